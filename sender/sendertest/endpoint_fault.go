package sendertest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// Reset reads the request and then resets the connection (TCP RST).
func Reset() Step {
	return Step{
		raw: func(_ context.Context, conn net.Conn) { reset(conn) },
		reply: func(context.Context) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
		},
	}
}

// ResetEarly resets the connection when it has read the request's header, and
// leaves the body unread. The request is recorded without a body.
func ResetEarly() Step {
	step := Reset()
	step.early = true
	return step
}

// CloseWithoutAnswer reads the request and closes the connection in good order
// without a byte of answer. In process the error is [io.EOF].
func CloseWithoutAnswer() Step {
	return Step{
		raw:   func(context.Context, net.Conn) {}, // the connection is closed after every raw step
		reply: func(context.Context) (*http.Response, error) { return nil, io.EOF },
	}
}

const garbage = "\x00\x01this is not HTTP\r\n\r\n"

// Garbage reads the request, sends bytes that are not HTTP, and closes the
// connection.
func Garbage() Step {
	return Step{
		raw: func(_ context.Context, conn net.Conn) { _, _ = io.WriteString(conn, garbage) },
		reply: func(context.Context) (*http.Response, error) {
			_, err := http.ReadResponse(bufio.NewReader(strings.NewReader(garbage)), nil)
			return nil, fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err)
		},
	}
}

const slowHead = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// SlowHeaders answers 200 with a head of some sixty bytes, the first at once and
// then one every interval.
func SlowHeaders(interval time.Duration) Step {
	return Step{
		raw: func(ctx context.Context, conn net.Conn) {
			for i := range len(slowHead) {
				if i > 0 && sleep(ctx, interval) != nil {
					return
				}
				if _, err := conn.Write([]byte{slowHead[i]}); err != nil {
					return
				}
			}
		},
		reply: func(ctx context.Context) (*http.Response, error) {
			if err := sleep(ctx, time.Duration(len(slowHead)-1)*interval); err != nil {
				return nil, err
			}
			return newAnswer(http.StatusOK, http.Header{"Connection": {"close"}}, 0, http.NoBody), nil
		},
	}
}

func reset(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // a TLS connection would say goodbye first
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
