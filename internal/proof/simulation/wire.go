package simulation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
)

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// answer is an endpoint's answer. The zero value is no answer.
type answer struct {
	status     int
	retryAfter time.Duration
	location   string
	took       time.Duration
	broken     bool // off, in its body
}

// send brings an attempt's POST to its endpoint, and the answer back, unless the
// network loses them or the process dies.
func (w *world) send(p *process, a *dispatch.Posting) {
	r := a.Request()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.fail(err)
		return
	}
	c := a.Claimed()
	number, _ := strconv.Atoi(r.Header.Get("Webhook-Attempt"))
	post := w.posted(p, c, r, body, number, a.Timeout())
	if post == nil {
		return
	}
	p.begins(post)
	life, ended := p.life, false
	end := func(after time.Duration, response *http.Response, err error) {
		w.at(after, func() {
			p.ifAlive(life, func() {
				if !ended {
					ended = true
					p.ends(post)
					a.End(response, err)
				}
			})
		})
	}
	end(a.Timeout(), nil, context.DeadlineExceeded)
	there := w.between(100*time.Microsecond, a.Timeout()/10)
	switch {
	case w.down.After(w.now) && !w.calm, w.fault(refused):
		post.d.say("is refused")
		end(there, nil, errRefused)
		return
	case w.fault(closedIdle):
		post.d.say("meets the closing of its connection")
		post.closedIdle = true
		if w.rand.IntN(4) == 0 { // the server has read it
			w.at(there, func() { post.d.sub.receive(post, r.Header, body) })
		}
		end(there, nil, io.EOF)
		return
	case w.fault(lostRequest):
		post.d.say("is lost on its way")
		return
	}
	arrive := func(answered func(answer)) func() {
		return func() {
			if got := post.d.sub.receive(post, r.Header, body); got.status != 0 {
				answered(got)
			}
		}
	}
	w.at(there, arrive(func(got answer) {
		back := got.took + w.between(100*time.Microsecond, a.Timeout()/10)
		switch {
		case w.fault(lostAnswer):
			post.d.say("its answer is lost")
			if w.rand.IntN(2) == 0 {
				end(back, nil, io.ErrUnexpectedEOF)
			}
			return
		case w.fault(lateAnswer):
			back += a.Timeout()
		}
		post.answered(got, w.now.Add(back))
		end(back, got.response(r), nil) //nolint:bodyclose // the attempt closes it
	}))
	if w.fault(duplicated) {
		w.at(w.between(time.Millisecond, time.Hour), arrive(func(answer) {}))
	}
}

// response is the answer for an HTTP client.
func (a answer) response(r *http.Request) *http.Response {
	h := http.Header{}
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(a.retryAfter/time.Second)))
	}
	if a.location != "" {
		h.Set("Location", a.location)
	}
	body := io.Reader(bytes.NewReader([]byte(`{"result":"of a simulation"}`)))
	if a.broken {
		body = io.MultiReader(bytes.NewReader([]byte("{")), brokenOff{})
	}
	return &http.Response{StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: io.NopCloser(body), Request: r}
}

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, errBrokenOff }

var errBrokenOff = errors.Join(errors.New("simulation: broken off"), io.ErrUnexpectedEOF)
