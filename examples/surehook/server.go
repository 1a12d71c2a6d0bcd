package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// server is the backend that is a reference server. It shows what the owner of its token
// may see: the operator, or a subscriber.
type server struct {
	base, token string
	http        http.Client
}

func newServer(base, token string) (*server, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("-server must be like https://hooks.example.com")
	case u.User != nil || u.RawQuery != "":
		return nil, errors.New("-server must have neither a user nor a query: the token goes into SUREHOOK_TOKEN or -token-file")
	case token == "":
		return nil, fmt.Errorf("there is no token for %s: set SUREHOOK_TOKEN or give -token-file; for a service without such a server, give its -database", u.Redacted())
	case u.Scheme == "http" && !local(u.Hostname()):
		return nil, fmt.Errorf("-server %s would send the token unencrypted: give a URL of https", u.Redacted())
	}
	return &server{base: strings.TrimSuffix(base, "/"), token: token, http: http.Client{
		Transport: transport, Timeout: 60 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// local tells whether a host is this machine. transport makes it true.
func local(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || underLocalhost(host) || err == nil && a.Unmap().IsLoopback()
}

// underLocalhost tells whether a host is a name under localhost, which is this machine by
// RFC 6761. Not every resolver and every proxy know that.
func underLocalhost(host string) bool { return strings.HasSuffix(host, ".localhost") }

// transport is http.DefaultTransport, except that names under localhost are this machine: no
// DNS is asked where they are, and no proxy gets what is for them.
var transport = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	proxy, dial := t.Proxy, t.DialContext
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if underLocalhost(r.URL.Hostname()) {
			return nil, nil
		}
		return proxy(r)
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(address); err == nil && underLocalhost(host) {
			address = net.JoinHostPort("localhost", port)
		}
		return dial(ctx, network, address)
	}
	return t
}()

func (s *server) close() {}

// A server that is asked too often has done nothing. It is asked again if it says that there
// is room soon.
const (
	askedTries = 5
	askedWait  = 2 * time.Second // what is longer is for the user to wait
)

// call makes a request, and reads the answer into out, unless that is nil.
func (s *server) call(ctx context.Context, method, path string, in, out any) error {
	for tries := 1; ; tries++ {
		err := s.ask(ctx, method, path, in, out)
		busy, is := errors.AsType[*busyError](err)
		if !is || busy.after == 0 || busy.after > askedWait || tries == askedTries {
			return err
		}
		if err := pause(ctx, busy.after); err != nil {
			return err
		}
	}
}

func (s *server) ask(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.http.Do(req)
	if err != nil {
		err = withoutURL(err)
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return fmt.Errorf("nobody answers at %s (%w): is the server running? -server says another one", s.base, err)
		}
		return fmt.Errorf("asking %s: %w", s.base, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 32<<20))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", s.base, err)
	}
	if res.StatusCode >= 300 {
		return refusal(res, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s does not answer like a reference server: %w", s.base, err)
	}
	return nil
}

// withoutURL is the cause of a request's error.
func withoutURL(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// busyError is the answer of a server that has no other just now.
type busyError struct {
	said  string
	after time.Duration // of a 429: when there is room again; 0: not known
}

func (e *busyError) Error() string { return e.said }

// answersLater tells whether a status says nothing about what was asked.
func answersLater(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }

// refusal words a problem document (RFC 9457).
func refusal(res *http.Response, text []byte) error {
	err := refused(res.StatusCode, text)
	if !answersLater(res.StatusCode) {
		return &noError{err}
	}
	busy := &busyError{said: err.Error()}
	if res.StatusCode == http.StatusTooManyRequests {
		busy.after, _ = backoff.ParseRetryAfter(res.Header.Get("Retry-After"), time.Now())
	}
	return busy
}

func refused(status int, text []byte) error {
	var p struct {
		Title, Detail string
		Errors        []struct{ Location, Message string }
	}
	if json.Unmarshal(text, &p) != nil || p.Title+p.Detail == "" {
		return fmt.Errorf("the server answered %d: is it a reference server?", status)
	}
	said := cmp.Or(p.Detail, p.Title)
	for _, e := range p.Errors {
		if strings.Contains(said, e.Message) {
			continue
		}
		said += fmt.Sprintf("; %s: %s", e.Location, e.Message)
	}
	if status == http.StatusUnauthorized {
		said += " (SUREHOOK_TOKEN or -token-file)"
	}
	return fmt.Errorf("the server answered %d: %s", status, said)
}

func (s *server) deliveries(ctx context.Context, f filter, cursor string, limit int) (p page, err error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{
		"status": f.status, "subscription_id": f.subscription, "subscriber_id": f.subscriber, "event_id": f.event, "event_type": f.eventType,
		"error_class": f.class, "since": f.since.String(), "until": f.until.String(), "cursor": cursor,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.object.Type != "" {
		return p, errObject
	}
	if f.code != 0 {
		q.Set("status_code", strconv.Itoa(f.code))
	}
	if err := s.call(ctx, http.MethodGet, "/deliveries?"+q.Encode(), nil, &p); err != nil {
		return p, err
	}
	return p, nil
}

// event cannot tell the subscriber, and the time is that of OccurredAt: a server says no more.
func (s *server) event(ctx context.Context, id string) (e eventInfo, subscriber string, err error) {
	var found struct {
		eventInfo
		OccurredAt time.Time `json:"occurred_at"`
	}
	err = s.call(ctx, http.MethodGet, "/events/"+url.PathEscape(id), nil, &found)
	found.CreatedAt = found.OccurredAt
	return found.eventInfo, "", err
}

func (s *server) whyOf(ctx context.Context, event, subscription string) (string, error) {
	var out struct{ Why, Reason string }
	err := s.call(ctx, http.MethodGet, "/subscriptions/"+url.PathEscape(subscription)+"/why?event_id="+url.QueryEscape(event), nil, &out)
	if out.Reason == string(history.WhyNotAddressed) {
		return "", nil
	}
	return out.Why, err
}

func (s *server) subscriptions(ctx context.Context, status, subscriber, cursor string) (p subscriptionPage, err error) {
	q := url.Values{"limit": {"200"}, "implicit": {"true"}}
	for name, value := range map[string]string{"status": status, "subscriber_id": subscriber, "cursor": cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return p, s.call(ctx, http.MethodGet, "/subscriptions?"+q.Encode(), nil, &p)
}

func (s *server) pause(ctx context.Context, id string) (one subscription, err error) {
	change := map[string]string{"status": "paused"}
	return one, s.call(ctx, http.MethodPatch, "/subscriptions/"+url.PathEscape(id), change, &one)
}

func (s *server) resume(ctx context.Context, id string, which resumption) (one subscription, err error) {
	if which.force {
		return one, errForce
	}
	change := map[string]string{"status": "active"}
	switch {
	case which.none:
		change["resume"] = "none"
	case !which.since.IsZero():
		change["resume"] = which.since.String()
	}
	return one, s.call(ctx, http.MethodPatch, "/subscriptions/"+url.PathEscape(id), change, &one)
}

func (s *server) notices(ctx context.Context, which notices, cursor string) (p noticePage, err error) {
	q := url.Values{"limit": {"200"}}
	if !which.acknowledged {
		q.Set("unacknowledged", "true")
	}
	for name, value := range map[string]string{"kind": which.kind, "cursor": cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return p, s.call(ctx, http.MethodGet, "/notices?"+q.Encode(), nil, &p)
}

func (s *server) acknowledge(ctx context.Context, id string) error {
	return s.call(ctx, http.MethodPost, "/notices/"+url.PathEscape(id)+"/acknowledge", nil, nil)
}

func (s *server) delivery(ctx context.Context, id string) (r record, err error) {
	return r, s.call(ctx, http.MethodGet, "/deliveries/"+url.PathEscape(id), nil, &r)
}

func (s *server) redeliver(ctx context.Context, id string, force bool) error {
	if force {
		return errForce
	}
	return s.call(ctx, http.MethodPost, "/deliveries/"+url.PathEscape(id)+"/redeliver", nil, nil)
}

func (s *server) eventsAbout(context.Context, object, int) ([]eventInfo, bool, error) {
	return nil, false, errors.New("what became of an object is asked of a -database: a server finds events by their ids")
}

var errObject = errors.New("-object is for a -database: a server does not look for deliveries by it")

var errForce = errors.New("-force is for the operator with the database: give -database")

type job struct {
	ID       string
	Kind     string
	Status   string
	Progress *struct{ Done, Total int64 }
	Result   json.RawMessage // of its kind
	Error    *string
}

type replayResult struct {
	Matched, Replayed int64
	More              bool // more may match
}

// replayed is the result of a replay; nil: there is none yet.
func (j *job) replayed() (r *replayResult, err error) {
	if len(j.Result) == 0 {
		return nil, nil
	}
	return r, json.Unmarshal(j.Result, &r)
}

// replayJob reads a job that must be a replay: -cancel would end any other, too.
func (s *server) replayJob(ctx context.Context, id string) (j job, err error) {
	if err := s.call(ctx, http.MethodGet, "/jobs/"+url.PathEscape(id), nil, &j); err != nil {
		return j, err
	}
	if j.Kind != "replay" {
		return j, no("%s is a job of the kind %s, and no replay", id, j.Kind)
	}
	return j, nil
}

func (j *job) ended() bool {
	return j.Status == "succeeded" || j.Status == "failed" || j.Status == "cancelled"
}

func (s *server) submit(ctx context.Context, f filter, rate float64, dry bool) (j job, err error) {
	input := map[string]any{}
	for name, value := range map[string]string{
		"status": f.status, "subscription_id": f.subscription, "subscriber_id": f.subscriber, "event_type": f.eventType, "error_class": f.class,
		"since": f.since.String(), "until": f.until.String(),
	} {
		if value != "" {
			input[name] = value
		}
	}
	if f.code != 0 {
		input["status_code"] = f.code
	}
	if rate > 0 {
		input["rate_per_second"] = rate
	}
	if dry {
		input["dry_run"] = true
	}
	return j, s.call(ctx, http.MethodPost, "/jobs", map[string]any{"kind": "replay", "input": input}, &j)
}

func (s *server) preview(ctx context.Context, f filter) (matched, error) {
	j, err := s.submit(ctx, f, 0, true)
	for err == nil && !j.ended() {
		if err = pause(ctx, 200*time.Millisecond); err == nil {
			err = s.call(ctx, http.MethodGet, "/jobs/"+j.ID, nil, &j)
		}
	}
	switch {
	case err != nil:
		return matched{}, err
	case j.Error != nil:
		return matched{}, no("%s", *j.Error)
	}
	result, err := j.replayed()
	if err == nil && result == nil {
		err = no("the job %s has ended as %s", j.ID, j.Status)
	}
	if err != nil {
		return matched{}, err
	}
	return matched{Count: result.Matched}, nil
}

func (s *server) replay(ctx context.Context, f filter, rate float64, force bool) (string, error) {
	if force {
		return "", errForce
	}
	j, err := s.submit(ctx, f, rate, false)
	return j.ID, err
}

func (s *server) replayed(ctx context.Context, id string) (replayState, error) {
	j, err := s.replayJob(ctx, id)
	if err != nil {
		return replayState{}, err
	}
	result, err := j.replayed()
	if err != nil {
		return replayState{}, err
	}
	r := replayState{ID: j.ID, Status: j.Status, Ended: j.ended(), More: j.Status == "queued" || j.Status == "running"}
	if j.Progress != nil {
		r.Sent, r.Matched, r.More = j.Progress.Done, j.Progress.Total, j.Progress.Total == 0
	}
	if result != nil {
		r.Matched, r.Sent, r.Skipped, r.More = result.Matched, result.Replayed, result.Matched-result.Replayed, result.More
	}
	if j.Status == "succeeded" {
		r.Status = "finished"
	}
	if j.Error != nil {
		r.Failure = *j.Error
	}
	return r, nil
}

func (s *server) cancelReplay(ctx context.Context, id string) error {
	if _, err := s.replayJob(ctx, id); err != nil {
		return err
	}
	return s.call(ctx, http.MethodPost, "/jobs/"+url.PathEscape(id)+"/cancel", nil, nil)
}

func (s *server) publish(ctx context.Context, e sender.Event) (sender.Ref, error) {
	if e.PayloadVersion != "" {
		return sender.Ref{}, errors.New("-payload-version is for -database and -to: a server goes by its own catalogue")
	}
	body := map[string]any{"type": e.Type, "object": object(e.Object)}
	if e.Data != nil {
		body["data"] = e.Data
	}
	if e.Version != 0 {
		body["version"] = e.Version
	}
	if e.Subscriber != "" {
		body["subscriber_id"] = e.Subscriber
	}
	var made struct {
		ID      string
		Version int64
	}
	err := s.call(ctx, http.MethodPost, "/events", body, &made)
	return sender.Ref{ID: made.ID, Version: made.Version}, err
}

func (s *server) events(subscriber string) (catchup.Source, error) {
	if subscriber != "" {
		return nil, errors.New("-subscriber is for a -database: a server shows the events of its token's owner")
	}
	return catchup.NewClient(s.base+"/events", &catchup.ClientConfig{
		Transport: transport, Token: catchup.Token(s.token), MaxPageBytes: 128 << 20, // as many events as are asked for, of 1 MiB each, and more
		AllowUnencrypted: true, // newServer refuses it, except for this machine
	})
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
