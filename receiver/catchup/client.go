package catchup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/backoff"
)

// ClientConfig adjusts a Client. A nil config and zero fields mean the defaults.
type ClientConfig struct {
	// Token returns the bearer token, before every request, so that it can be
	// rotated; see [Token]. Nil: none is sent.
	Token func(ctx context.Context) (string, error)

	// Transport makes the requests.
	// Defaults to http.DefaultTransport.
	Transport http.RoundTripper

	// MaxPageBytes bounds an answer, and with it the memory. It must not be below the
	// largest event: a larger one is passed over as a [Refusal].
	// Defaults to 16 MiB.
	MaxPageBytes int64

	// AllowUnencrypted allows a URL of http. Anyone on the way can then make up events
	// and read the token.
	AllowUnencrypted bool
}

// Token is a ClientConfig.Token that is always the same.
func Token(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Client reads a feed over HTTP. It follows no redirects, which could lead the token
// elsewhere, and undoes no compression. It is safe for concurrent use.
type Client struct {
	url  url.URL
	http http.Client
	cfg  ClientConfig
}

// answerTime is what an answer may take after the wait.
const answerTime = 30 * time.Second

// NewClient returns a client of the feed at a URL, whose own query is kept. All
// problems are reported at once. It makes no request.
func NewClient(feed string, cfg *ClientConfig) (*Client, error) {
	c := &Client{}
	if cfg != nil {
		c.cfg = *cfg
	}
	var errs []error
	if c.cfg.MaxPageBytes < 0 {
		errs = append(errs, fmt.Errorf("catchup: MaxPageBytes is %d: it must be positive", c.cfg.MaxPageBytes))
	}
	if c.cfg.MaxPageBytes == 0 {
		c.cfg.MaxPageBytes = 16 << 20
	}
	u, err := url.Parse(feed)
	switch {
	case err != nil || u.Host == "":
		errs = append(errs, errors.New("catchup: the feed's URL must be absolute, like https://sender.example/events"))
	case u.User != nil:
		errs = append(errs, errors.New("catchup: the feed's URL has user info: give the token by ClientConfig.Token"))
	case u.Scheme != "https" && (u.Scheme != "http" || !c.cfg.AllowUnencrypted):
		errs = append(errs, fmt.Errorf("catchup: the feed's URL is of %q: it must be https, since no signature covers what is read (AllowUnencrypted allows http)", u.Scheme))
	default:
		c.url = *u
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.http = http.Client{Transport: c.cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// Page implements [Source].
func (c *Client) Page(ctx context.Context, after string, limit int, wait time.Duration) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+answerTime)
	defer cancel()
	req, err := c.request(ctx, after, limit, wait)
	if err != nil {
		return Page{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var at *url.Error // its text has the URL, and the cursor with it
		if errors.As(err, &at) {
			err = at.Err
		}
		return Page{}, fmt.Errorf("catchup: asking %s: %w", c.url.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.cfg.MaxPageBytes+1))
	switch {
	case err != nil:
		return Page{}, fmt.Errorf("catchup: reading the answer of %s: %w", c.url.Host, err)
	case resp.StatusCode != http.StatusOK:
		return Page{}, refusal(resp, body)
	case resp.Header.Get("Content-Encoding") != "":
		return Page{}, errors.New("catchup: the answer is compressed, though that was not asked for")
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "application/json" {
		return Page{}, errors.New("catchup: the answer is no JSON: is the URL that of a feed?")
	}
	if int64(len(body)) > c.cfg.MaxPageBytes {
		return Page{}, c.tooLarge(io.MultiReader(bytes.NewReader(body), resp.Body), limit)
	}
	var page struct {
		Data *[]json.RawMessage `json:"data"`
		Next string             `json:"next_cursor"`
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Data == nil || page.Next == "" {
		return Page{}, errors.New("catchup: the answer is no page of a feed: it must be an object with data, a list, and next_cursor, a string")
	}
	return Page{Events: *page.Data, Next: page.Next}, nil
}

// tooLarge finds the cursor behind a page of one event, since no smaller page can be
// asked for.
func (c *Client) tooLarge(page io.Reader, limit int) error {
	err := fmt.Errorf("it has more than the %d bytes that MaxPageBytes allows", c.cfg.MaxPageBytes)
	if limit > 1 {
		return fmt.Errorf("%w: %w", ErrPageTooLarge, err)
	}
	next, unknown := cursorBehind(page)
	if unknown != nil {
		return &PageTooLargeError{Err: fmt.Errorf("%w, and cannot be passed over: %w", err, unknown)}
	}
	return &PageTooLargeError{Next: next, Err: err}
}

func (c *Client) request(ctx context.Context, after string, limit int, wait time.Duration) (*http.Request, error) {
	u := c.url
	query := u.Query()
	if after != "" {
		query.Set("after", after)
	}
	query.Set("limit", strconv.Itoa(limit))
	if seconds := int(wait / time.Second); seconds > 0 {
		query.Set("wait", strconv.Itoa(seconds))
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("catchup: the request could not be made")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity") // set, net/http leaves the answer as it is
	if c.cfg.Token != nil {
		token, err := c.cfg.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("catchup: getting the token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

const maxDetail = 200

// refusal is the error of an answer that is no page.
func refusal(resp *http.Response, body []byte) error {
	var problem struct {
		Type   string `json:"type"`
		Detail string `json:"detail"`
		Next   string `json:"next_cursor"`
	}
	_ = json.Unmarshal(body, &problem) // what is no problem document has no details
	if resp.StatusCode == http.StatusGone && strings.HasSuffix(problem.Type, "cursor-expired") {
		return &ExpiredError{Next: problem.Next}
	}
	e := &StatusError{Status: resp.StatusCode, Detail: problem.Detail}
	if len(e.Detail) > maxDetail {
		e.Detail = strings.ToValidUTF8(e.Detail[:maxDetail], "") + "…"
	}
	e.RetryAfter, _ = backoff.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	return e
}
