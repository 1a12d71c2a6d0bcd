// Package keyfetch fetches the public keys and certificates of senders, within bounds, and
// keeps them.
//
// Strangers choose which key a request names, and so they choose what is fetched. A [Client]
// asks pinned hosts alone, at public addresses. A [Cache] bounds how often.
//
// Package signing/jose is a module of its own. It is built with whatever version of this
// package a program has, so nothing that is exported here changes or goes.
package keyfetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/guard"
)

// ClientConfig has the settings of a Client. The zero value and nil are valid.
type ClientConfig struct {
	Timeout  time.Duration // of one answer, all of it. Defaults to 3 s.
	MaxBytes int64         // of one answer. Defaults to 64 KiB.

	// Dial and Roots are for tests, which have a host of their own. By default only globally
	// routable addresses are dialled, and the system's roots are used.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Roots *x509.CertPool
}

// Client asks a few hosts over https, each at port 443, without a proxy and without following
// redirects. It is safe for concurrent use.
type Client struct {
	// Transport makes the requests. Only a test sets another, before the first request.
	Transport http.RoundTripper

	hosts    []string
	timeout  time.Duration
	maxBytes int64
}

const (
	defaultTimeout  = 3 * time.Second
	defaultMaxBytes = 64 << 10
	maxHeader       = 16 << 10
)

// ErrURL: the client may not ask for the URL.
var ErrURL = errors.New("keyfetch: the URL is not https at one of the pinned hosts")

// NewClient returns a client for these host names, each in lower case and without a port.
func NewClient(hosts []string, cfg *ClientConfig) *Client {
	var c ClientConfig
	if cfg != nil {
		c = *cfg
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: c.Timeout, ControlContext: guard.Policy{}.Control}).DialContext
	}
	return &Client{
		hosts: slices.Clone(hosts), timeout: c.Timeout, maxBytes: c.MaxBytes,
		Transport: &http.Transport{ // without a proxy, which would dial in place of the guard
			DialContext:            c.Dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
			TLSHandshakeTimeout:    c.Timeout,
			MaxResponseHeaderBytes: maxHeader,
			DisableKeepAlives:      true,
		},
	}
}

// Check returns ErrURL unless the client may ask for the URL. It takes one spelling alone: a
// URL that package net/url writes otherwise is refused, so that no other reader can see
// another host in it.
func (c *Client) Check(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || !slices.Contains(c.hosts, u.Host) || u.String() != text {
		return ErrURL
	}
	return nil
}

// Get returns the body of the answer with the status 200. No error has the URL.
func (c *Client) Get(ctx context.Context, url string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, url, nil)
}

// Post posts JSON, and returns as Get does.
func (c *Client) Post(ctx context.Context, url string, body []byte) ([]byte, error) {
	return c.do(ctx, http.MethodPost, url, body)
}

func (c *Client) do(ctx context.Context, method, to string, body []byte) ([]byte, error) {
	if err := c.Check(to); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, ErrURL
	}
	req.Header.Set("Accept-Encoding", "identity") // or a small answer could become a large one
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.Transport.RoundTrip(req) // which follows no redirect
	if err != nil {
		return nil, fmt.Errorf("keyfetch: asking the host: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("keyfetch: the host answered %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, c.maxBytes+1))
	if err == nil {
		// TLS says goodbye before the connection is closed. A host that ends its answer because
		// of that makes it look whole.
		err = ctx.Err()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("keyfetch: reading the answer: %w", err)
	case int64(len(text)) > c.maxBytes:
		return nil, fmt.Errorf("keyfetch: the answer has more than %d bytes", c.maxBytes)
	}
	return text, nil
}
