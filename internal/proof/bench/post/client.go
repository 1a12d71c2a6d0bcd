package post

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/surehook/surehook/signing"
)

// timeout bounds a POST, as the dispatcher's default does.
const timeout = 10 * time.Second

// Secret is the secret with which all processes sign and verify.
const Secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// Keyring holds Secret.
func Keyring() (*signing.Keyring, error) {
	parsed, err := signing.ParseSecret(Secret)
	if err != nil {
		return nil, err
	}
	return signing.NewKeyring(signing.Key{ID: "bench", Secret: parsed})
}

// Client posts. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	schemes   []signing.Scheme
	keys      *signing.Keyring
}

// New returns a Client that keeps up to connections open to a host.
func New(connections int, schemes []signing.Scheme) (*Client, error) {
	keys, err := Keyring()
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &Client{
		transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true, Protocols: protocols},
		schemes:   schemes, keys: keys,
	}, nil
}

var (
	jsonType  = []string{"application/json"}
	userAgent = []string{"surehook"}
)

// Post makes one POST. Anything but 200 is an error.
func (c *Client) Post(ctx context.Context, u *url.URL, id string, attempt int, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	header := make(http.Header, 8)
	header["Content-Type"] = jsonType
	header["User-Agent"] = userAgent
	header["Webhook-Attempt"] = []string{strconv.Itoa(attempt)}
	if err := signing.Sign(header, c.schemes, id, time.Now(), body, c.keys); err != nil {
		return err
	}
	req := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return fmt.Errorf("answered %d: %s", res.StatusCode, answer)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}
