package pythia.peer;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * How long things took, in nanoseconds: a histogram of fixed size whose buckets are 1/64 of their value wide.
 *
 * <p>Any number of threads may record, and no number of samples makes it grow.
 */
final class Latencies {
    private static final int STEP_BITS = 6;
    private static final int STEPS = 1 << STEP_BITS;

    private final AtomicLongArray counts = new AtomicLongArray((Long.SIZE - STEP_BITS) * STEPS);

    void record(long nanoseconds) {
        counts.incrementAndGet(bucket(Math.max(0, nanoseconds)));
    }

    /** The value in microseconds that the share of the samples does not exceed; 0 without samples. */
    double microseconds(double share) {
        long total = 0;
        for (int index = 0; index < counts.length(); index++) {
            total += counts.get(index);
        }
        long wanted = (long) Math.ceil(share * total);
        long seen = 0;
        for (int index = 0; index < counts.length(); index++) {
            seen += counts.get(index);
            if (seen >= wanted && seen > 0) {
                return middle(index) / 1000.0;
            }
        }
        return 0.0;
    }

    private static int bucket(long value) {
        int shift = Math.max(0, Long.SIZE - Long.numberOfLeadingZeros(value) - STEP_BITS - 1);
        return (shift << STEP_BITS) + (int) (value >>> shift);
    }

    private static double middle(int index) {
        int shift = Math.max(0, (index >>> STEP_BITS) - 1);
        long lowest = (long) (index - (shift << STEP_BITS)) << shift;
        return lowest + (1L << shift) / 2.0;
    }
}
