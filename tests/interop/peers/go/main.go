// A peer with a lock of go-zookeeper. What it is told, and answers, is in lines.rs.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

const tag = "go-zookeeper"

// Which one it was built with.
var version = "?"

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func increment(conn *zk.Conn, lock *zk.Lock, counter string, times int) (int, error) {
	takenOver := 0
	for i := 0; i < times; i++ {
		if err := lock.Lock(); err != nil {
			return 0, err
		}
		data, _, err := conn.Get(counter)
		if err != nil {
			return 0, err
		}
		value, writer, _ := strings.Cut(string(data), " ")
		if writer != tag {
			takenOver++
		}
		number, err := strconv.Atoi(value)
		if err != nil {
			return 0, err
		}
		if _, err := conn.Set(counter, []byte(fmt.Sprintf("%d %s", number+1, tag)), -1); err != nil {
			return 0, err
		}
		if err := lock.Unlock(); err != nil {
			return 0, err
		}
	}
	return takenOver, nil
}

func main() {
	hosts, path, counter, name := os.Args[1], os.Args[2], os.Args[3], os.Args[5]
	session, err := strconv.Atoi(os.Args[4])
	must(err)
	if name != "lock" {
		log.Fatal("no such lock: ", name)
	}
	quiet := log.New(io.Discard, "", 0)
	conn, events, err := zk.Connect(strings.Split(hosts, ","), time.Duration(session)*time.Millisecond,
		zk.WithLogger(quiet))
	must(err)
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	var lost int32
	go func() {
		for event := range events {
			if event.State == zk.StateExpired {
				atomic.StoreInt32(&lost, 1)
			}
		}
	}()
	lock, held := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll)), false
	answer := func(command, argument string) (string, error) {
		switch command {
		case "acquire":
			if err := lock.Lock(); err != nil {
				return "", err
			}
			atomic.StoreInt32(&lost, 0)
			held = true
			return "acquired", nil
		case "release":
			held = false
			return "released", lock.Unlock()
		case "state":
			if held && atomic.LoadInt32(&lost) == 0 {
				return "held", nil
			}
			return "lost", nil
		case "increment":
			times, err := strconv.Atoi(argument)
			if err != nil {
				return "", err
			}
			takenOver, err := increment(conn, lock, counter, times)
			return fmt.Sprint("incremented ", takenOver), err
		}
		return "", fmt.Errorf("no such command: %s", command)
	}
	fmt.Println("ready", version)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		command, argument, _ := strings.Cut(in.Text(), " ")
		said, err := answer(command, argument)
		if err != nil {
			said = fmt.Sprint("error ", err)
		}
		fmt.Println(said)
	}
}
