// Asking this oracle, and nobody else. A token is kept for this tab only.

const KEY = "pythia-token";
const TIMEOUT_MS = 5_000;
const HAND_OVER_TIMEOUT_MS = 60_000;

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The answer was ${status}.`);
    this.status = status;
    this.problem = problem;
  }

  get wantsToken() {
    return ["token-missing", "token-refused", "role-missing"].includes(this.problem.code);
  }
}

// Nobody answered, or not to the end: the process is gone, or the way to it.
export class Unreachable extends Error {}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

async function ask(path, options = {}, timeoutMs = TIMEOUT_MS) {
  const known = token.get();
  const headers = known ? { Authorization: `Bearer ${known}` } : {};
  let response;
  let answer;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(timeoutMs) });
    answer = response.ok ? await response.json() : await response.json().catch(() => null);
  } catch (error) {
    throw new Unreachable(String(error));
  }
  if (!response.ok) throw new Refused(response.status, answer ?? {});
  return answer;
}

export const installation = () => ask("/v1/installation");
export const metrics = () => ask("/v1/installation/metrics");
export const handOver = () => ask("/v1/installation/hand-over", { method: "POST" }, HAND_OVER_TIMEOUT_MS);
