import java.io.IOException;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** A peer with a lock of Curator. */
record CuratorPeer(CuratorFramework client, InterProcessLock lock, AtomicBoolean lost, String counter)
        implements Peer {
    public static void main(String[] arguments) throws Exception {
        var client = CuratorFrameworkFactory.builder()
                .connectString(arguments[0])
                .sessionTimeoutMs(Integer.parseInt(arguments[3]))
                .retryPolicy(new ExponentialBackoffRetry(100, 10))
                .build();
        var lost = new AtomicBoolean();
        client.getConnectionStateListenable().addListener((it, state) -> {
            if (state == ConnectionState.LOST) {
                lost.set(true);
            }
        });
        client.start();
        var path = arguments[1];
        InterProcessLock lock = switch (arguments[4]) {
            case "lock" -> new InterProcessMutex(client, path);
            case "read" -> new InterProcessReadWriteLock(client, path).readLock();
            case "write" -> new InterProcessReadWriteLock(client, path).writeLock();
            default -> throw new IllegalArgumentException("no such lock: " + arguments[4]);
        };
        Peer.serve("Curator", version(), new CuratorPeer(client, lock, lost, arguments[2]));
        client.close();
    }

    private static String version() throws IOException {
        var about = "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties";
        var properties = new Properties();
        try (var in = InterProcessMutex.class.getResourceAsStream(about)) {
            properties.load(in);
        }
        return properties.getProperty("version");
    }

    public void acquire() throws Exception {
        lock.acquire();
        lost.set(false);
    }

    public boolean isHeld() {
        return lock.isAcquiredInThisProcess() && !lost.get();
    }

    public void release() throws Exception {
        lock.release();
    }

    public byte[] readCounter() throws Exception {
        return client.getData().forPath(counter);
    }

    public void writeCounter(byte[] data) throws Exception {
        client.setData().forPath(counter, data);
    }
}
