package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/examples/surehook/verify"
	"github.com/surehook/surehook/signing"
)

// poster posts events as a dispatcher does.
type poster struct {
	url  string
	keys *signing.Keyring
	http http.Client
}

func newPoster(to string, secret signing.Secret, timeout time.Duration) (*poster, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("-to must be like http://127.0.0.1:3000/webhooks, without user and fragment")
	}
	if timeout <= 0 {
		return nil, fmt.Errorf("-timeout is %v: it must be above 0", timeout)
	}
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		return nil, err
	}
	return &poster{to, keys, http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// answer is what came of an attempt.
type answer struct {
	status int   // 0: none
	err    error // why there is none
	took   time.Duration
	body   string // its beginning
}

func (a *answer) good() bool { return a.status >= 200 && a.status < 300 }

func (a *answer) String() string {
	took := a.took.Round(time.Millisecond)
	switch {
	case a.err != nil:
		return fmt.Sprintf("no answer after %v: %v", took, a.err)
	case a.good() || a.body == "":
		return fmt.Sprintf("%d in %v", a.status, took)
	}
	return fmt.Sprintf("%d in %v: %q", a.status, took, a.body)
}

const snippet = 200 // bytes of an answer that are shown

// cut returns what is shown of an answer. It ends with a whole character.
func cut(answer string) string {
	if len(answer) <= snippet {
		return answer
	}
	return strings.ToValidUTF8(answer[:snippet], "")
}

func (p *poster) post(ctx context.Context, id string, body []byte, attempt int) answer {
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "surehook")
	req.Header.Set("Webhook-Attempt", strconv.Itoa(attempt))
	if err := signing.Sign(req.Header, signing.DefaultSchemes(), id, begun, body, p.keys); err != nil {
		return answer{err: err}
	}
	res, err := p.http.Do(req)
	if err != nil {
		return answer{err: withoutURL(err), took: time.Since(begun)}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<10))
	if err != nil {
		return answer{err: fmt.Errorf("the answer broke off: %w", err), took: time.Since(begun)}
	}
	return answer{status: res.StatusCode, took: time.Since(begun), body: cut(string(text))}
}

// secretOf reads the secret to sign with from a file or the environment. Without
// either it makes one.
func secretOf(file string, t *terminal) (s signing.Secret, from string, err error) {
	text, from := t.env("WEBHOOK_SECRET"), "WEBHOOK_SECRET"
	if file != "" {
		from = "-secret-file"
		if text, err = textFile("secret-file", file); err != nil {
			return s, from, err
		}
	}
	if text == "" {
		return signing.GenerateSecret(), "", nil
	}
	if s, err = verify.Secret(text); err != nil {
		return s, from, fmt.Errorf("%s: %w", from, err)
	}
	return s, from, nil
}
