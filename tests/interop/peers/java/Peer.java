import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** A lock of some library on one path. What a peer is told, and answers, is in lines.rs. */
interface Peer {
    void acquire() throws Exception;

    void release() throws Exception;

    /** Whether it holds, as far as the library tells a program that listens to it. */
    boolean isHeld() throws Exception;

    byte[] readCounter() throws Exception;

    void writeCounter(byte[] data) throws Exception;

    /** Does what it is told until there is nothing more. */
    static void serve(String tag, String version, Peer peer) throws Exception {
        System.out.println("ready " + version);
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            System.out.println(answer(tag, peer, line));
        }
    }

    private static String answer(String tag, Peer peer, String line) {
        try {
            if (line.equals("acquire")) {
                peer.acquire();
                return "acquired";
            } else if (line.equals("release")) {
                peer.release();
                return "released";
            } else if (line.equals("state")) {
                return peer.isHeld() ? "held" : "lost";
            } else if (line.startsWith("increment ")) {
                int times = Integer.parseInt(line.substring("increment ".length()));
                return "incremented " + increment(tag, peer, times);
            }
            throw new IllegalArgumentException("no such command: " + line);
        } catch (Exception error) {
            return "error " + error.toString().replace('\n', ' ');
        }
    }

    private static int increment(String tag, Peer peer, int times) throws Exception {
        int takenOver = 0;
        for (int i = 0; i < times; i++) {
            peer.acquire();
            String[] data = new String(peer.readCounter(), StandardCharsets.UTF_8).split(" ");
            if (!data[1].equals(tag)) {
                takenOver++;
            }
            long next = Long.parseLong(data[0]) + 1;
            peer.writeCounter((next + " " + tag).getBytes(StandardCharsets.UTF_8));
            peer.release();
        }
        return takenOver;
    }
}
