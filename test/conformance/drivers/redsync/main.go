// The driver of redsync (Go).
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

const pause = 200 * time.Millisecond

var mutexes []*redsync.Mutex

func number(text string) int {
	value, _ := strconv.Atoi(text)
	return value
}

func answer(rs *redsync.Redsync, words []string) string {
	switch words[0] {
	case "lock":
		mutex := rs.NewMutex(words[1],
			redsync.WithExpiry(time.Duration(number(words[2]))*time.Millisecond),
			redsync.WithTries(1+number(words[3])/int(pause.Milliseconds())),
			redsync.WithRetryDelay(pause))
		if mutex.Lock() != nil {
			return "no"
		}
		mutexes = append(mutexes, mutex)
		return fmt.Sprintf("ok %d %d %s", len(mutexes)-1, time.Until(mutex.Until()).Milliseconds(),
			mutex.Value())
	case "extend": // To the expiry that the lock was made with.
		mutex := mutexes[number(words[1])]
		if good, _ := mutex.Extend(); !good {
			return "no"
		}
		return fmt.Sprintf("ok %d", time.Until(mutex.Until()).Milliseconds())
	case "unlock":
		if good, _ := mutexes[number(words[1])].Unlock(); !good {
			return "no"
		}
		return "ok"
	}
	return "unsupported"
}

func main() {
	var pools []redis.Pool
	for _, place := range os.Args[1:] {
		pools = append(pools, goredis.NewPool(client.NewClient(&client.Options{Addr: place})))
	}
	rs := redsync.New(pools...)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(answer(rs, strings.Fields(lines.Text())))
	}
}
