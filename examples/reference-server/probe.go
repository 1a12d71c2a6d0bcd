package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const probeTimeout = 5 * time.Second

// probe asks the server that listens on addr whether it is ready, for containers that
// hold nothing but this program.
func probe(ctx context.Context, addr string) error {
	at, err := reachable(addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return fmt.Errorf("it is not ready: %s", said)
	}
	return nil
}

// reachable is where a server that listens on addr is reached from its own machine.
func reachable(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() { // it listens on every address
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), err
}
