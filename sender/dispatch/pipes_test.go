package dispatch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// far stands at the far end of connections that are pipes, so that a test can use it in
// virtual time.
type far struct {
	serving sync.WaitGroup

	mu    sync.Mutex
	serve func(*bufio.Reader, net.Conn) // nil: connections are refused
	asked int                           // for connections
	conns int                           // that are open
}

func (f *far) dial(context.Context, string, string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.serve == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	f.conns++
	serve := f.serve
	ours, theirs := net.Pipe()
	f.serving.Go(func() {
		defer func() {
			_ = theirs.Close()
			f.mu.Lock()
			f.conns--
			f.mu.Unlock()
		}()
		serve(bufio.NewReader(theirs), theirs)
	})
	return ours, nil
}

// set says how the far end behaves from now on.
func (f *far) set(serve func(*bufio.Reader, net.Conn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serve = serve
}

// dialled returns how many connections were asked for. open returns how many are open.
func (f *far) dialled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *far) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns
}

// hung reads everything, and never answers.
func hung(_ *bufio.Reader, conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// answering answers each request by the function of its method, and reads everything if
// there is none.
func answering(by map[string]func(net.Conn)) func(*bufio.Reader, net.Conn) {
	return func(r *bufio.Reader, conn net.Conn) {
		for {
			request, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			answer := by[request.Method]
			if answer == nil {
				_, _ = io.Copy(io.Discard, conn)
				return
			}
			answer(conn)
			if request.Close {
				return
			}
		}
	}
}

// after answers with a status after a while.
func after(d time.Duration, status int) func(net.Conn) {
	return func(conn net.Conn) {
		time.Sleep(d)
		length := "Content-Length: 0\r\n"
		if status == 200 {
			length = "" // the answer to a CONNECT has none
		}
		fmt.Fprintf(conn, "HTTP/1.1 %d Words\r\n%s\r\n", status, length)
	}
}

// words writes bytes that are no answer.
func words(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.Copy(conn, strings.NewReader(text)) }
}
