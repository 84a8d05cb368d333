// bench KIND IN_FLIGHT SECONDS - lock + unlock cycles of one way to lock, one line of figures.
//
// KIND: redsync, etcd, zookeeper, get-lock, insert, for-update (the last three: MariaDB), advisory
// (PostgreSQL).  The servers are those of REDLOCK_MASTERS ("host:port,...").  The clients have their
// defaults.  test/bench/alternatives starts this.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What fails is tried again after this pause, so that it does not spin.
const failedPause = time.Millisecond

// A locker locks and unlocks the name of one slot.  lock returns the unlock.
type locker func() (unlock func() error, err error)

// A kind connects, and makes the locker of each slot.
type kind func(ctx context.Context, places []string) (func(slot int) (locker, error), error)

var kinds = map[string]kind{
	"redsync":    redsyncKind,
	"etcd":       etcdKind,
	"zookeeper":  zookeeperKind,
	"get-lock":   getLockKind,
	"insert":     insertKind,
	"for-update": forUpdateKind,
	"advisory":   advisoryKind,
}

type figures struct {
	acquireUs []float64
	cycles    int
	errors    int
	firstErr  error
}

func (f *figures) failed(err error) {
	f.errors++
	if f.firstErr == nil {
		f.firstErr = err
	}
	time.Sleep(failedPause)
}

// slot runs cycles until the end.
func slot(lock locker, end time.Time) (f figures) {
	for time.Now().Before(end) {
		began := time.Now()
		unlock, err := lock()
		if err != nil {
			f.failed(err)
			continue
		}
		f.acquireUs = append(f.acquireUs, float64(time.Since(began).Nanoseconds())/1000)
		if err := unlock(); err != nil {
			f.failed(err)
			continue
		}
		f.cycles++
	}
	return f
}

func run(lockers []locker, seconds float64) (all figures) {
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	found := make([]figures, len(lockers))
	var group sync.WaitGroup
	for i, lock := range lockers {
		group.Add(1)
		go func() {
			defer group.Done()
			found[i] = slot(lock, end)
		}()
	}
	group.Wait()
	for _, f := range found {
		all.acquireUs = append(all.acquireUs, f.acquireUs...)
		all.cycles += f.cycles
		all.errors += f.errors
		if all.firstErr == nil {
			all.firstErr = f.firstErr
		}
	}
	slices.Sort(all.acquireUs)
	return all
}

// cpuUs is the time that all threads of this process have run, in microseconds.
func cpuUs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1000
}

func percentile(sorted []float64, percent float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(float64(len(sorted))*percent/100))-1]
}

func bench(name string, inFlight int, seconds float64) error {
	make, known := kinds[name]
	if !known {
		return fmt.Errorf("unknown kind %q", name)
	}
	lockerOf, err := make(context.Background(), strings.Split(os.Getenv("REDLOCK_MASTERS"), ","))
	if err != nil {
		return err
	}
	var lockers []locker
	for i := 0; i < inFlight; i++ {
		lock, err := lockerOf(i)
		if err != nil {
			return err
		}
		lockers = append(lockers, lock)
	}
	run(lockers, seconds/4) // Connects, and warms up.
	began, cpuBegan := time.Now(), cpuUs()
	f := run(lockers, seconds)
	cycles := math.Max(float64(f.cycles), 1)
	fmt.Printf("cycles_per_s=%.1f acquire_p50_us=%.1f acquire_p99_us=%.1f cpu_us_per_cycle=%.2f errors=%d\n",
		float64(f.cycles)/time.Since(began).Seconds(), percentile(f.acquireUs, 50),
		percentile(f.acquireUs, 99), (cpuUs()-cpuBegan)/cycles, f.errors)
	if f.firstErr != nil {
		fmt.Fprintln(os.Stderr, f.firstErr)
	}
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: bench KIND IN_FLIGHT SECONDS")
		os.Exit(64)
	}
	inFlight, _ := strconv.Atoi(os.Args[2])
	seconds, _ := strconv.ParseFloat(os.Args[3], 64)
	if err := bench(os.Args[1], inFlight, seconds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
