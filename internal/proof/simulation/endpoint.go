package simulation

import (
	"net/http"
	"strconv"
	"time"

	"github.com/surehook/surehook/signing"
)

// endpoint is a subscription's endpoint: a receiver on a database of its own, with
// possible trouble in front of it.
type endpoint struct {
	s       *subscription
	store   receiving
	handler http.Handler
	skew    time.Duration // of its clock
	trouble func(w *world) answer
	until   time.Time // the trouble lasts

	applied // the expected content of its database
	now     doing
}

// doing is the request in hand.
type doing struct {
	post      *post
	committed bool // one with its marker
}

func (e *endpoint) clock() time.Time { return e.s.w.now.Add(e.skew) }

// open makes the receiver, as at the start of its process.
func (e *endpoint) open() error {
	if e.store == nil {
		e.store, e.applied = e.s.w.receiving(), newApplied()
	}
	keyring, err := signing.NewKeyring(e.s.owner.keys(e.s.w.now)...)
	if err != nil {
		return err
	}
	verifier, err := signing.NewVerifier(keyring, &signing.VerifierConfig{Now: e.clock})
	if err != nil {
		return err
	}
	e.handler, err = e.store.handler(e, verifier)
	return err
}

// receive is an endpoint's reaction to a request.
func (e *endpoint) receive(post *post, header http.Header, body []byte) answer {
	w := e.s.w
	if e.trouble != nil && e.until.After(w.now) {
		got := e.trouble(w)
		post.d.say("is answered %d", got.status)
		return got
	}
	e.trouble = nil
	r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "/hook", newBody(body))
	if err != nil {
		w.fail(err)
		return answer{}
	}
	r.RequestURI, r.Header, r.ContentLength = "/hook", header.Clone(), int64(len(body))
	e.now = doing{post: post}
	answering := &answering{e: e, header: http.Header{}}
	e.handler.ServeHTTP(answering, r)
	post.d.say("is received, answered %d", answering.status)
	e.checkEffects()
	got := answer{status: answering.status, took: w.between(time.Microsecond, post.timeout/2)}
	if seconds, err := strconv.Atoi(answering.header.Get("Retry-After")); err == nil {
		got.retryAfter = time.Duration(seconds) * time.Second
	}
	got.broken = w.fault(brokenBody)
	return got
}

// weather changes an endpoint's trouble from time to time.
func (e *endpoint) weather() {
	w := e.s.w
	if w.fault(wrongClock) {
		e.skew = w.between(time.Second, 30*time.Minute)
		if w.rand.IntN(2) == 0 {
			e.skew = -e.skew
		}
		w.at(w.between(time.Second, w.lasts/20), func() { e.skew = 0 })
	}
	if !w.fault(badWeather) {
		return
	}
	e.until = w.now.Add(w.between(time.Second, w.lasts/10))
	e.trouble = troubles[w.rand.IntN(len(troubles))]
	w.say("%s is in trouble until %v", e.s.name, e.until.Sub(begins))
}

// troubles are an endpoint's possible troubles. During trouble, requests do not get to its
// receiver.
var troubles = []func(w *world) answer{
	func(w *world) answer { return answer{status: 500, took: w.between(time.Microsecond, time.Second)} },
	func(w *world) answer { return answer{status: 400 + w.rand.IntN(20)} },
	func(*world) answer { return answer{status: 410} },
	func(w *world) answer {
		return answer{status: 429, retryAfter: w.between(time.Second, 48*time.Hour).Truncate(time.Second)}
	},
	func(w *world) answer {
		return answer{status: 503, retryAfter: w.between(time.Second, time.Hour).Truncate(time.Second)}
	},
	func(w *world) answer {
		return answer{status: 300 + w.rand.IntN(9), location: "https://elsewhere.example.com/"}
	},
	func(*world) answer { return answer{} }, // hangs
	func(w *world) answer { return answer{status: 200, took: time.Hour} },
	func(w *world) answer {
		return answer{status: 500, took: w.between(w.config.Timeout/10, 2*w.config.Timeout)}
	},
}
