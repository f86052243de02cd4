package pythia.peer;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.omid.committable.CommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTableConfig;
import org.apache.omid.tso.client.OmidClientConfiguration;
import org.apache.omid.tso.client.TSOClient;

/**
 * Puts load on Omid's server through its own client, one window on each command, so that one warm JVM serves them all.
 *
 * <p>Arguments: the server's port on loopback, and the commit table that the client is to write (low-latency mode) or
 * nothing. Each line of standard input, {@code run <in flight> <cells> <connections> <seconds>}, is answered by one
 * line of JSON on standard output. It ends when standard input does.
 */
public final class Driver {
    private static final int REQUEST_TIMEOUT_MS = 30_000;

    private final String server;
    private final CommitTable.Writer writer;
    private final List<TSOClient> clients = new ArrayList<>();

    private Driver(String server, CommitTable.Writer writer) {
        this.server = server;
        this.writer = writer;
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        CommitTable.Writer writer = arguments.length > 1 ? commitTableWriter(arguments[1]) : null;
        Driver driver = new Driver("127.0.0.1:" + arguments[0], writer);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(driver.answer(line.split(" ")));
            System.out.flush();
        }
        System.exit(0);
    }

    private static CommitTable.Writer commitTableWriter(String table) throws IOException {
        HBaseCommitTableConfig settings = new HBaseCommitTableConfig();
        settings.setTableName(table);
        return new HBaseCommitTable(HBaseConfiguration.create(), settings).getWriter();
    }

    private String answer(String[] command) throws IOException, InterruptedException {
        int inFlight = Integer.parseInt(command[1]);
        int cells = Integer.parseInt(command[2]);
        connect(Integer.parseInt(command[3]));
        List<TSOClient> used = clients.subList(0, Integer.parseInt(command[3]));
        Window window = new Window(used, inFlight, cells, Double.parseDouble(command[4]), writer);
        OperatingSystemMXBean process = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        long cpuBefore = process.getProcessCpuTime();
        window.run();
        return window.toJson((process.getProcessCpuTime() - cpuBefore) / 1e9);
    }

    private void connect(int connections) throws IOException {
        while (clients.size() < connections) {
            OmidClientConfiguration settings = new OmidClientConfiguration();
            settings.setConnectionString(server);
            // Longer than any stall of a busy machine: without a commit table the server dies of a repeated commit.
            settings.setRequestTimeoutInMs(REQUEST_TIMEOUT_MS);
            clients.add(TSOClient.newInstance(settings));
        }
    }
}
