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

func increment(conn *zk.Conn, lock *zk.Lock, counter string, times int) int {
	takenOver := 0
	for i := 0; i < times; i++ {
		must(lock.Lock())
		data, _, err := conn.Get(counter)
		must(err)
		value, writer, _ := strings.Cut(string(data), " ")
		if writer != tag {
			takenOver++
		}
		number, err := strconv.Atoi(value)
		must(err)
		_, err = conn.Set(counter, []byte(fmt.Sprintf("%d %s", number+1, tag)), -1)
		must(err)
		must(lock.Unlock())
	}
	return takenOver
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
	go func() {
		for range events {
		}
	}()
	lock := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
	fmt.Println("ready", version)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		command, argument, _ := strings.Cut(in.Text(), " ")
		switch command {
		case "acquire":
			must(lock.Lock())
			fmt.Println("acquired")
		case "release":
			must(lock.Unlock())
			fmt.Println("released")
		case "increment":
			times, err := strconv.Atoi(argument)
			must(err)
			fmt.Println("incremented", increment(conn, lock, counter, times))
		default:
			log.Fatal("no such command: ", in.Text())
		}
	}
}
