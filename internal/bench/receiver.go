package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/surehook/surehook/signing"
)

// receive serves until standard input ends: it reads each body, verifies its
// signature, and answers 200.
func receive() error {
	parsed, err := signing.ParseSecret(secret)
	if err != nil {
		return err
	}
	ring, err := signing.NewKeyring(signing.Key{ID: "bench", Secret: parsed})
	if err != nil {
		return err
	}
	verifier, err := signing.NewVerifier(ring, nil)
	if err != nil {
		return err
	}
	buffers := sync.Pool{New: func() any { return new([8 << 10]byte) }}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cpu", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, cpuTime()) })
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		buf := buffers.Get().(*[8 << 10]byte)
		defer buffers.Put(buf)
		n, err := io.ReadFull(r.Body, buf[:])
		if err != io.ErrUnexpectedEOF {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if _, err := verifier.Verify(signing.Message{Method: r.Method, Header: r.Header, Body: buf[:n]}); err != nil {
			fmt.Fprintln(os.Stderr, "bench receiver:", err)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = srv.Close()
	}()
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
