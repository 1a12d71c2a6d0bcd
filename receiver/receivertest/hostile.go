package receivertest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/surehook/surehook/signing"
)

// Subject is a handler to be tried, with the means to see its effects. The handler may be
// made by package receiver or by anybody else.
type Subject struct {
	// Handler gets all requests at the path of HostileConfig.Sender, so it may be a router.
	// An inbox answers before it applies: give the Handler of its receiver, with the same
	// work.
	Handler http.Handler
	Secret  signing.Secret

	// Effects returns how many effects the event has had: how often the application's own
	// change was made for it. It must see committed data alone, on a connection of its
	// own. It may be called while the handler runs.
	Effects func(ctx context.Context, ev Event) (int, error)

	// Fail makes the application's own change fail until mend is called, for instance by
	// renaming its table. Without Fail, Hostile does not try whether an event gets lost
	// when applying it fails.
	Fail func() (mend func())

	// Rotate gives the handler next besides the secret that it has. Without Rotate,
	// rotation is not tried.
	Rotate func(next signing.Secret)
}

// HostileConfig has the optional settings of Hostile. The zero value and nil are valid.
type HostileConfig struct {
	// Sender signs and posts.
	Sender SenderConfig

	// Types are the types of an object's first event, its second, and so on. The last one
	// counts for all further events. They should be the types that the handler has
	// different functions for, since a handler that is right for each type alone can still
	// lose the event of one that overtook another. The object's type is the first word.
	// Defaults to subscriber.created and subscriber.updated.
	Types []string

	// NewEvent makes a valid event with an id of its own, about an object. It is for
	// handlers that need data. Its type should depend on the version, as Types says.
	// Defaults to events of Types, without data.
	NewEvent func(objectID string, version int64) Event

	// Facts says that the handler takes events as facts: each must have its effect once,
	// also if a newer one of its object came first. Otherwise an older event must not
	// have an effect after a newer one.
	Facts bool

	// Unversioned says that the handler's sender gives no versions, so that an older
	// event can be applied after a newer one. The order of versions is then not tried.
	// It goes without Facts.
	Unversioned bool

	// Seed decides the disorder of events.
	// Defaults to 1.
	Seed uint64

	// Flood is how many requests come at once.
	// Defaults to 64.
	Flood int

	// Timeout is how long an answer may take.
	// Defaults to 15 s.
	Timeout time.Duration
}

// The promises of a receiver that Hostile reports when they are broken.
const (
	PromiseOneEffect  = "per (scope, id) at most one effect"
	PromiseOrder      = "never an older one over a newer"
	PromiseCommit     = "no 2xx before the commit"
	PromiseNotLost    = "a marker if and only if effect, stale, or local dead letter"
	PromiseDuplicate  = "applied; duplicate; stale: 200"
	PromiseBusy       = "the same id already in work here: 503 with Retry-After"
	PromiseMalformed  = "malformed or repeated header, truncated body: no effect and no 2xx"
	PromiseVerified   = "outside the window; wrong signature: no effect and 401, one body for all"
	PromiseRotation   = "the signature is tried with every valid secret"
	PromiseBodyBounds = "the body is bounded in size"
	PromiseSecret     = "no byte of a secret in any answer"
)

// Hostile does to the subject's handler what networks, senders and attackers do. It
// delivers, duplicates, reorders and delays events, replays captured requests, rotates
// the secret, drops answers after the commit, breaks off in mid-body, forges, and floods.
// It reports each broken promise as an error of t, and logs each trial that it could not
// make. The events are new, and nothing else may send to the handler meanwhile. They are
// taken for states, unless HostileConfig.Facts says otherwise; see receiver.Work.
//
//	receivertest.Hostile(t, receivertest.Subject{
//		Handler: handler, Secret: secret,
//		Effects: func(ctx context.Context, ev receivertest.Event) (n int, err error) {
//			err = db.QueryRowContext(ctx, "SELECT count(*) FROM invoices_paid WHERE event = ?", ev.ID).Scan(&n)
//			return n, err
//		},
//	}, nil)
//
// It has a real connection for each request, and takes about a second. A correct handler
// passes under any seed. A pass proves only what was tried.
func Hostile(t testing.TB, subject Subject, cfg *HostileConfig) {
	t.Helper()
	h := &hostile{t: t, subject: subject}
	if cfg != nil {
		h.cfg = *cfg
	}
	h.cfg.Seed = cmp.Or(h.cfg.Seed, 1)
	h.cfg.Flood = cmp.Or(h.cfg.Flood, 64)
	h.cfg.Timeout = cmp.Or(h.cfg.Timeout, 15*time.Second)
	if len(h.cfg.Types) == 0 {
		h.cfg.Types = []string{"subscriber.created", "subscriber.updated"}
	}
	if h.cfg.NewEvent == nil {
		h.cfg.NewEvent = h.typed
	}
	if subject.Handler == nil || subject.Effects == nil {
		t.Fatal("receivertest: the Subject needs a Handler, and Effects to see what it has done")
		return
	}
	server := httptest.NewServer(h.watched(subject.Handler))
	// server.Close would wait half a second for the connection whose body was too large, which
	// net/http keeps for that long.
	defer h.watch.end()
	defer func() { _ = server.Config.Close() }()
	transport := &http.Transport{MaxIdleConnsPerHost: h.cfg.Flood}
	defer transport.CloseIdleConnections()
	h.cfg.Sender.Client = cmp.Or(h.cfg.Sender.Client, &http.Client{
		Transport: transport,
		// A receiver never redirects, and a sender never follows.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	h.sender = NewSender(t, subject.Secret, &h.cfg.Sender)
	h.url = server.URL + h.sender.cfg.Path
	h.timed = signsTime(h.sender.cfg.Schemes)
	if !h.delivers() {
		return // all that follows would fail for the same reason
	}
	for _, try := range []func(){
		h.answersAfterCommit, h.duplicates, h.captures, h.reorders, h.olderAfterNewer, h.dropsAnswers, h.breaksOff,
		h.forges, h.garbles, h.endless, h.floodsWithOne, h.floodsWithMany, h.fails, h.rotates,
	} {
		try()
	}
}

type hostile struct {
	t       testing.TB
	subject Subject
	cfg     HostileConfig
	sender  *Sender
	url     string
	watch   watch
	objects int
	timed   bool // the signatures cover a time
}

// signsTime is false if one of the schemes rests on deduplication alone.
func signsTime(schemes []signing.Scheme) bool {
	for _, s := range schemes {
		if says, ok := s.(interface{ ReplayDefence() signing.ReplayDefence }); ok && says.ReplayDefence() == signing.DedupAlone {
			return false
		}
	}
	return true
}

func (h *hostile) broken(promise, format string, args ...any) {
	h.t.Helper()
	h.t.Errorf("receivertest: broken: %s\n\t%s", promise, fmt.Sprintf(format, args...))
}

func (h *hostile) typed(objectID string, version int64) Event {
	eventType := h.cfg.Types[min(version, int64(len(h.cfg.Types)))-1]
	objectType, _, _ := strings.Cut(eventType, ".")
	ev := NewEvent(objectType, objectID, version)
	ev.Type = eventType
	return ev
}

// event is about an object that no other test has.
func (h *hostile) event() Event { return h.cfg.NewEvent(h.object(), 1) }

func (h *hostile) object() string {
	h.objects++
	return fmt.Sprintf("hostile-%d-%d", time.Now().UnixNano(), h.objects)
}

// post returns a zero Answer if none came.
func (h *hostile) post(req *Request) Answer {
	ctx, cancel := context.WithTimeout(h.t.Context(), h.cfg.Timeout)
	defer cancel()
	a, err := req.Post(ctx, h.url)
	if err != nil {
		return Answer{}
	}
	return a
}

func ok(a Answer) bool { return a.Status/100 == 2 }

// insist delivers until the answer is no 503, as a sender does that tries again.
func (h *hostile) insist(ev Event) Answer {
	const most = 100
	for i := 1; ; i++ {
		a := h.post(h.sender.Request(ev))
		if a.Status != 0 && a.Status != http.StatusServiceUnavailable || i == most {
			return a
		}
		time.Sleep(time.Duration(min(i, 20)) * time.Millisecond)
	}
}

func (h *hostile) effects(ev Event) int {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), h.cfg.Timeout)
	defer cancel()
	n, err := h.subject.Effects(ctx, ev)
	if err != nil {
		h.t.Fatalf("receivertest: Subject.Effects: %v", err)
	}
	return n
}

// atMost reports more effects than there may be.
func (h *hostile) atMost(most int, ev Event, promise, after string) {
	h.t.Helper()
	if n := h.effects(ev); n > most {
		h.broken(promise, "%s: the event has had %d effects, where it may have %d", after, n, most)
	}
}

// applied insists, and reports an event that then has no effect.
func (h *hostile) applied(ev Event, after string) {
	h.t.Helper()
	a := h.insist(ev)
	switch n := h.effects(ev); {
	case !ok(a) && n > 0:
		h.broken(PromiseDuplicate, "%s: the event has had its effect, and is answered with %d", after, a.Status)
	case !ok(a):
		h.broken(PromiseNotLost, "%s: the event is answered with %d, however often it is sent", after, a.Status)
	case n == 0:
		h.broken(PromiseNotLost, "%s: the event is answered with %d and has no effect: it is lost", after, a.Status)
	case n > 1:
		h.broken(PromiseOneEffect, "%s: the event has had %d effects", after, n)
	}
}
