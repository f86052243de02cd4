package pythia.peer;

import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.omid.committable.CommitTable;
import org.apache.omid.tso.client.AbortException;
import org.apache.omid.tso.client.CellId;
import org.apache.omid.tso.client.TSOClient;
import org.apache.omid.tso.client.TSOFuture;
import org.apache.omid.tso.util.DummyCellIdImpl;

/**
 * One window of a closed loop: a fixed number of transactions in flight, each followed at once by the next.
 *
 * <p>What ends after the window does not count; the window's object outlives it only until those have ended.
 */
final class Window {
    private static final long CELL_SPACE = 1L << 40;
    private static final long DRAIN_SECONDS_MAX = 60;
    private static final Executor DIRECTLY = Runnable::run;

    private final List<TSOClient> clients;
    private final int inFlight;
    private final int cells;
    private final double seconds;
    private final CommitTable.Writer writer;
    private final Latencies wholeTook = new Latencies();
    private final Latencies beginTook = new Latencies();
    private final Latencies commitTook = new Latencies();
    private final LongAdder committed = new LongAdder();
    private final LongAdder aborted = new LongAdder();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final CountDownLatch running;
    /** Never more threads than transactions in flight: each writes its own commit, as Omid's own HBase client does. */
    private final ExecutorService writers = Executors.newCachedThreadPool();
    private volatile long endsNanoTime;

    Window(List<TSOClient> clients, int inFlight, int cells, double seconds, CommitTable.Writer writer) {
        this.clients = clients;
        this.inFlight = inFlight;
        this.cells = cells;
        this.seconds = seconds;
        this.writer = writer;
        this.running = new CountDownLatch(inFlight);
    }

    void run() throws InterruptedException {
        endsNanoTime = System.nanoTime() + (long) (seconds * 1e9);
        for (int number = 0; number < inFlight; number++) {
            new Transaction(clients.get(number % clients.size())).begin();
        }
        if (!running.await((long) seconds + DRAIN_SECONDS_MAX, TimeUnit.SECONDS)) {
            failure.compareAndSet(null, new IOException("transactions did not end within " + DRAIN_SECONDS_MAX + " s"));
        }
        writers.shutdown();
    }

    String toJson(double cpuSeconds) {
        if (failure.get() != null) {
            return "{\"error\": \"" + failure.get().toString().replaceAll("[\\p{Cntrl}\"\\\\]", " ") + "\"}";
        }
        return String.format(
                Locale.ROOT,
                "{\"transactions\": %d, \"aborted\": %d, \"seconds\": %.6f, \"cpu_seconds\": %.6f, %s, %s, %s}",
                committed.sum(), aborted.sum(), seconds, cpuSeconds,
                percentiles("whole", wholeTook), percentiles("begin", beginTook), percentiles("commit", commitTook));
    }

    private static String percentiles(String name, Latencies latencies) {
        return String.format(
                Locale.ROOT,
                "\"%s\": {\"p50_us\": %.1f, \"p99_us\": %.1f}",
                name, latencies.microseconds(0.5), latencies.microseconds(0.99));
    }

    private final class Transaction {
        private final TSOClient client;
        private long startedNanoTime;
        private long begunNanoTime;

        Transaction(TSOClient client) {
            this.client = client;
        }

        void begin() {
            startedNanoTime = System.nanoTime();
            if (startedNanoTime >= endsNanoTime || failure.get() != null) {
                running.countDown();
                return;
            }
            TSOFuture<Long> timestamp = client.getNewStartTimestamp();
            timestamp.addListener(() -> guarded(() -> commit(timestamp.get())), DIRECTLY);
        }

        private void commit(long startTimestamp) {
            begunNanoTime = System.nanoTime();
            TSOFuture<Long> decision = client.commit(startTimestamp, randomCells());
            decision.addListener(() -> guarded(() -> decided(startTimestamp, decision)), DIRECTLY);
        }

        private void decided(long startTimestamp, TSOFuture<Long> decision) throws Exception {
            long commitTimestamp;
            try {
                commitTimestamp = decision.get();
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof AbortException)) {
                    throw error;
                }
                end(false);
                return;
            }
            if (writer == null) {
                end(true);
            } else {
                writers.execute(() -> guarded(
                        () -> end(writer.atomicAddCommittedTransaction(startTimestamp, commitTimestamp))));
            }
        }

        private void end(boolean isCommitted) {
            long now = System.nanoTime();
            if (now < endsNanoTime) {
                (isCommitted ? committed : aborted).increment();
                beginTook.record(begunNanoTime - startedNanoTime);
                commitTook.record(now - begunNanoTime);
                wholeTook.record(now - startedNanoTime);
            }
            begin();
        }

        private void guarded(Step step) {
            try {
                step.take();
            } catch (Throwable error) {
                failure.compareAndSet(null, error);
                running.countDown();
            }
        }

        private Set<CellId> randomCells() {
            Set<CellId> chosen = new HashSet<>();
            for (int number = 0; number < cells; number++) {
                chosen.add(new DummyCellIdImpl(ThreadLocalRandom.current().nextLong(CELL_SPACE)));
            }
            return chosen;
        }
    }

    private interface Step {
        void take() throws Exception;
    }
}
