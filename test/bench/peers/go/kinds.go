package main

// How each kind locks and unlocks one name.

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	_ "github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	client "github.com/redis/go-redis/v9"
	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

const (
	ttl     = 10 * time.Second
	connect = 5 * time.Second
)

func nameOf(slot int) string {
	return fmt.Sprintf("bench-%d", slot)
}

func redsyncKind(_ context.Context, places []string) (func(int) (locker, error), error) {
	var pools []redis.Pool
	for _, place := range places {
		pools = append(pools, goredis.NewPool(client.NewClient(&client.Options{Addr: place})))
	}
	rs := redsync.New(pools...)
	return func(slot int) (locker, error) {
		return func() (func() error, error) {
			mutex := rs.NewMutex(nameOf(slot), redsync.WithExpiry(ttl), redsync.WithTries(1))
			unlock := func() error {
				_, err := mutex.Unlock()
				return err
			}
			return unlock, mutex.Lock()
		}, nil
	}, nil
}

// All slots share one session, whose lease is kept alive.
func etcdKind(ctx context.Context, places []string) (func(int) (locker, error), error) {
	cli, err := etcd.New(etcd.Config{Endpoints: places, DialTimeout: connect, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(cli, concurrency.WithTTL(int(ttl.Seconds())))
	if err != nil {
		return nil, err
	}
	return func(slot int) (locker, error) {
		return func() (func() error, error) {
			mutex := concurrency.NewMutex(session, "/bench/"+nameOf(slot))
			return func() error { return mutex.Unlock(ctx) }, mutex.Lock(ctx)
		}, nil
	}, nil
}

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

// All slots share one session.
func zookeeperKind(_ context.Context, places []string) (func(int) (locker, error), error) {
	conn, _, err := zk.Connect(places, ttl, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	return func(slot int) (locker, error) {
		return func() (func() error, error) {
			lock := zk.NewLock(conn, "/"+nameOf(slot), zk.WorldACL(zk.PermAll))
			return lock.Unlock, lock.Lock()
		}, nil
	}, nil
}

// mariadbKind gives each slot a connection, on which prepare is called once.
func mariadbKind(ctx context.Context, places []string,
	prepare func(conn *sql.Conn, name string) (locker, error)) (func(int) (locker, error), error) {
	db, err := sql.Open("mysql", "root@tcp("+places[0]+")/bench?interpolateParams=true")
	if err != nil {
		return nil, err
	}
	return func(slot int) (locker, error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		return prepare(conn, nameOf(slot))
	}, nil
}

func getLockKind(ctx context.Context, places []string) (func(int) (locker, error), error) {
	return mariadbKind(ctx, places, func(conn *sql.Conn, name string) (locker, error) {
		return func() (func() error, error) {
			var got, freed int
			err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", name).Scan(&got)
			if err == nil && got != 1 {
				err = fmt.Errorf("%s is held", name)
			}
			return func() error {
				return conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", name).Scan(&freed)
			}, err
		}, nil
	})
}

func insertKind(ctx context.Context, places []string) (func(int) (locker, error), error) {
	return mariadbKind(ctx, places, func(conn *sql.Conn, name string) (locker, error) {
		_, err := conn.ExecContext(ctx, "DELETE FROM held WHERE name = ?", name)
		return func() (func() error, error) {
			_, err := conn.ExecContext(ctx, "INSERT INTO held VALUES (?, ?)", name, "a client")
			return func() error {
				_, err := conn.ExecContext(ctx, "DELETE FROM held WHERE name = ? AND holder = ?", name, "a client")
				return err
			}, err
		}, err
	})
}

func forUpdateKind(ctx context.Context, places []string) (func(int) (locker, error), error) {
	return mariadbKind(ctx, places, func(conn *sql.Conn, name string) (locker, error) {
		_, err := conn.ExecContext(ctx, "INSERT IGNORE INTO names VALUES (?)", name)
		return func() (func() error, error) {
			var found string
			tx, err := conn.BeginTx(ctx, nil)
			if err != nil {
				return nil, err
			}
			err = tx.QueryRow("SELECT name FROM names WHERE name = ? FOR UPDATE", name).Scan(&found)
			if err != nil {
				_ = tx.Rollback() // The first error is told.
			}
			return tx.Commit, err
		}, err
	})
}

func advisoryKind(ctx context.Context, places []string) (func(int) (locker, error), error) {
	return func(slot int) (locker, error) {
		conn, err := pgx.Connect(ctx, "postgres://bench@"+places[0]+"/postgres?sslmode=disable")
		return func() (func() error, error) {
			_, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", slot)
			return func() error {
				_, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", slot)
				return err
			}, err
		}, err
	}, nil
}
