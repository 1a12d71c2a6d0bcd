package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/signing"
)

// ceiling is the baseline: the same POST, with the same headers and signed the same
// way, as fast as net/http makes it, with a transport of its own, a context deadline
// for each, and nothing else.
func ceiling(target string, n int) (measured, error) {
	const connections = 128
	parsed, err := signing.ParseSecret(secret)
	if err != nil {
		return measured{}, err
	}
	ring, err := signing.NewKeyring(signing.Key{ID: "bench", Secret: parsed})
	if err != nil {
		return measured{}, err
	}
	u, err := url.Parse(target + "/bare")
	if err != nil {
		return measured{}, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}
	const id = "evt_06gvim7anlqpl4mutjrbmae00c"
	schemes := signing.DefaultSchemes()
	body := append([]byte(`{"data":"`), bytes.Repeat([]byte("x"), 1024-11)...)
	body = append(body, `"}`...)
	post := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		header := make(http.Header, 8)
		header["Content-Type"] = []string{"application/json"}
		header["User-Agent"] = []string{"bench"}
		header["Webhook-Attempt"] = []string{"1"}
		if err := signing.Sign(header, schemes, id, time.Now(), body, ring); err != nil {
			return err
		}
		req := (&http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: header,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}).WithContext(ctx)
		res, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("answered %d", res.StatusCode)
		}
		return err
	}
	run := func(n int) error {
		var left atomic.Int64
		left.Store(int64(n))
		var failed atomic.Value
		var wg sync.WaitGroup
		for range connections {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if err := post(); err != nil {
						failed.Store(err)
						return
					}
				}
			})
		}
		wg.Wait()
		err, _ := failed.Load().(error)
		return err
	}
	if err := run(n / 20); err != nil {
		return measured{}, err
	}
	cpu, began := cpuTime(), time.Now()
	if err := run(n); err != nil {
		return measured{}, err
	}
	return measured{Deliveries: n, Seconds: time.Since(began).Seconds(), SenderCPU: (cpuTime() - cpu) / float64(n)}, nil
}
