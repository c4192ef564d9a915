import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.retry.RetryOneTime;

/** Curator's InterProcessMutex (or what BENCH_KIND says), a client for each of N threads: called with HOSTS PATH N SECONDS, as the C programs. */
public final class CuratorLock {
    static final int WARMING = 0, MEASURING = 1, OVER = 2;
    static final AtomicInteger phase = new AtomicInteger(WARMING);
    static final AtomicLong acquisitions = new AtomicLong();
    static final AtomicLong lastRelease = new AtomicLong();
    static final int MOST = 1_000_000;
    static final int[] samples = new int[MOST];
    static final AtomicInteger sampled = new AtomicInteger();

    static InterProcessLock lock(CuratorFramework client, String path) {
        String kind = System.getenv("BENCH_KIND");
        if ("write".equals(kind)) return new InterProcessReadWriteLock(client, path).writeLock();
        // A semaphore's only permit, as a lock.
        if ("permit".equals(kind)) return new InterProcessSemaphoreMutex(client, path);
        return new InterProcessMutex(client, path);
    }

    static void contend(CuratorFramework client, String path, boolean alone) {
        InterProcessLock mutex = lock(client, path);
        try {
            while (phase.get() != OVER) {
                long asked = System.nanoTime();
                mutex.acquire();
                long got = System.nanoTime(), since = alone ? asked : lastRelease.get();
                if (phase.get() == MEASURING && since - asked >= 0) {
                    int at = sampled.getAndIncrement();
                    if (at < MOST) samples[at] = (int) ((got - since) / 1000);
                }
                acquisitions.incrementAndGet();
                lastRelease.set(System.nanoTime());
                mutex.release();
            }
        } catch (Exception error) {
            System.err.println(error);
            System.exit(1);
        }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[2]);
        double seconds = Double.parseDouble(args[3]);
        List<CuratorFramework> clients = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], 30000, 15000, new RetryOneTime(100));
            client.start();
            client.blockUntilConnected();
            clients.add(client);
            threads.add(new Thread(() -> contend(client, args[1], n == 1)));
        }
        threads.forEach(Thread::start);
        // A Java machine is slow until it has compiled what it runs.
        Thread.sleep((long) (Math.max(1.0, seconds) * 1000));
        long before = acquisitions.get(), from = System.nanoTime();
        phase.set(MEASURING);
        System.out.println("begin");
        Thread.sleep((long) (seconds * 1000));
        phase.set(OVER);
        long count = acquisitions.get() - before;
        double took = (System.nanoTime() - from) / 1e9;
        System.out.println("end");
        for (Thread thread : threads) thread.join();
        int kept = Math.min(sampled.get(), MOST);
        Arrays.sort(samples, 0, kept);
        String quantiles = kept == 0 ? "" : ",\"p50_us\":" + samples[kept / 2] + ",\"p99_us\":" + samples[kept - 1 - kept / 100];
        System.out.println("{\"count\":" + count + ",\"seconds\":" + took + quantiles + "}");
        clients.forEach(CuratorFramework::close);
    }
}
