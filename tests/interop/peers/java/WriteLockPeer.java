import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.zookeeper.Version;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** A peer with the lock recipe that ZooKeeper ships in Java. */
record WriteLockPeer(ZooKeeper client, WriteLock lock, Semaphore acquired, AtomicBoolean lost, String counter)
        implements Peer {
    public static void main(String[] arguments) throws Exception {
        var connected = new CountDownLatch(1);
        var lost = new AtomicBoolean();
        var client = new ZooKeeper(arguments[0], Integer.parseInt(arguments[3]), event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            } else if (event.getState() == KeeperState.Expired) {
                lost.set(true);
            }
        });
        connected.await();
        if (!arguments[4].equals("lock")) {
            throw new IllegalArgumentException("no such lock: " + arguments[4]);
        }
        var acquired = new Semaphore(0);
        var listener = new LockListener() {
            public void lockAcquired() {
                acquired.release();
            }

            public void lockReleased() {}
        };
        var lock = new WriteLock(client, arguments[1], ZooDefs.Ids.OPEN_ACL_UNSAFE, listener);
        Peer.serve("WriteLock", Version.getVersion(), new WriteLockPeer(client, lock, acquired, lost, arguments[2]));
        client.close();
    }

    /**
     * The recipe calls its listener in the end, from here or from the thread that has the events. Where the claim
     * before its own goes between its listing and its watch, it would wait for ever: it has to be asked again. Asked
     * while another's claim is before its own it would watch that once more, and claim again for each watch.
     */
    public void acquire() throws Exception {
        acquired.drainPermits();
        lock.lock();
        while (!acquired.tryAcquire(100, TimeUnit.MILLISECONDS) || !lock.isOwner()) {
            if (isFirst()) {
                lock.lock();
            }
        }
    }

    public boolean isHeld() {
        return lock.isOwner() && !lost.get();
    }

    private boolean isFirst() throws Exception {
        var numbers = client.getChildren(lock.getDir(), false).stream().map(WriteLockPeer::number);
        return numbers.min(String::compareTo).equals(Optional.of(number(lock.getId())));
    }

    private static String number(String name) {
        return name.substring(name.length() - 10);
    }

    public void release() {
        lock.unlock();
    }

    public byte[] readCounter() throws Exception {
        return client.getData(counter, false, null);
    }

    public void writeCounter(byte[] data) throws Exception {
        client.setData(counter, data, -1);
    }
}
