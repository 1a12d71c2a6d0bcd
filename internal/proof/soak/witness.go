package soak

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/jobs"
)

// witness records what happens, and reports violations. It is safe for concurrent use.
type witness struct {
	*findings
	*figures

	mu      sync.Mutex
	nonces  map[uint64]*event
	ids     map[string]*event
	next    uint64
	jobs    map[string]*job
	told    map[string]int         // completions in the feed, by the job's id
	objects map[sender.Object]bool // all that were ever published
	made    map[string]int64       // rows by design, by table: see keeps
	secrets []string               // texts that must not be anywhere
	order   order
	claims  map[string][]claim // by events' ids
}

// claim is the claim of an attempt, and how long its dispatcher took to hear of it.
type claim struct {
	subscription string
	number       int
	took         time.Duration
}

func newWitness(f *findings, n *figures) *witness {
	return &witness{findings: f, figures: n, nonces: map[uint64]*event{}, ids: map[string]*event{}, jobs: map[string]*job{}, told: map[string]int{}, objects: map[sender.Object]bool{}, made: map[string]int64{}, order: newOrder(), claims: map[string][]claim{}}
}

// begin notes that an event is about to be published, and gives it a nonce.
func (w *witness) begin(e *event) *event {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	e.looked = time.Now()
	e.nonce, e.began, e.wires, e.told = w.next, time.Now(), map[string]*wire{}, map[string]*told{}
	w.nonces[e.nonce] = e
	return e
}

// end notes the outcome for the publisher.
func (w *witness) end(e *event, o outcome, ref sender.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.outcome, e.acked = o, time.Now()
	w.objects[e.object] = true
	switch o {
	case committed:
		if e.id != "" && e.id != ref.ID {
			w.add("I1", "the event with nonce %d was acknowledged as %s, and posted as %s", e.nonce, ref.ID, e.id)
		}
		e.id, e.version = ref.ID, ref.Version
		w.ids[e.id] = e
	case undone:
		if e.seen {
			w.add("I2", "the event with nonce %d was posted before its transaction rolled back", e.nonce)
		}
	case trying, unknown:
	}
}

// content has the fields of an event's body that the witness reads.
type content struct {
	ID     string        `json:"id"`
	Type   string        `json:"type"`
	Object sender.Object `json:"-"`
	About  struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"object"`
	Version int64 `json:"version"`
	Data    struct {
		Nonce uint64 `json:"nonce"`
	} `json:"data"`
}

func parse(body []byte) (c content, err error) {
	err = json.Unmarshal(body, &c)
	c.Object = sender.Object(c.About)
	return c, err
}

// known finds the event of a body, or makes one for an event of the library's own. It
// is called with the lock held.
func (w *witness) known(c content, body []byte) *event {
	e := w.nonces[c.Data.Nonce]
	if e == nil || c.Data.Nonce == 0 {
		if e = w.ids[c.ID]; e == nil {
			e = &event{outcome: committed, id: c.ID, version: c.Version, kind: c.Type, object: c.Object, began: time.Now(), acked: time.Now(), looked: time.Now(), wires: map[string]*wire{}, told: map[string]*told{}}
			if ours(c.Type) {
				w.add("I2", "event %s, nonce %d, was seen, which nobody published or which was pruned", c.ID, c.Data.Nonce)
			}
			w.ids[c.ID], w.objects[c.Object] = e, true
		}
	}
	sum := sha256.Sum256(body)
	switch {
	case e.outcome == undone:
		w.add("I2", "the event with nonce %d was seen, whose transaction rolled back", e.nonce)
	case e.seen && e.sum != sum:
		w.add("I4", "event %s has other bytes than before", c.ID)
	case e.id != "" && e.id != c.ID:
		w.add("I1", "the event with nonce %d has two ids, %s and %s", e.nonce, e.id, c.ID)
	case e.version != 0 && e.version != c.Version, e.kind != c.Type, e.object != c.Object:
		w.add("I4", "event %s is of version %d, %s and %v in its body, and was published as of version %d, %s and %v",
			c.ID, c.Version, c.Type, c.Object, e.version, e.kind, e.object)
	}
	if !e.seen {
		e.seen, e.sum, e.id = true, sum, c.ID
		w.ids[c.ID] = e
	}
	return e
}

// ours tells the types that publishers publish.
func ours(kind string) bool { return strings.HasPrefix(kind, "a.") || strings.HasPrefix(kind, "b.") }

// posted notes a POST to a slot.
func (w *witness) posted(slot string, number int, signed int64, body []byte) *post {
	p := &post{number: number, at: time.Now(), signed: signed}
	c, err := parse(body)
	if err != nil {
		w.add("I4", "the body of a post is not an event: %v", err)
		return p
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.known(c, body)
	d := e.wires[slot]
	if d == nil {
		d = &wire{}
		e.wires[slot] = d
	}
	if slices.ContainsFunc(d.posts, func(o *post) bool { return o.number == number }) {
		w.add("I3", "attempt %d of event %s was posted twice to %s", number, c.ID, slot)
	}
	if n := len(d.posts); n > 0 && d.posts[n-1].number < number && d.posts[n-1].signed > signed {
		w.add("I4", "attempt %d of event %s to %s has an older timestamp than the one before", number, c.ID, slot)
	}
	if late := time.Since(time.Unix(signed, 0)); late > time.Minute || late < -2*time.Second {
		w.add("I4", "attempt %d of event %s to %s has a timestamp that is %v old", number, c.ID, slot, late)
	}
	if number == 1 {
		w.attempted(slot, &c, signed)
	}
	d.posts = append(d.posts, p)
	e.unchecked()
	return p
}

// note changes a post.
func (w *witness) note(p *post, change func(p *post)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(p)
}

// recorded is called by the dispatchers' hooks.
func (w *witness) recorded(r *dispatch.Recorded) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Result.Class == sender.ClassInterrupted { // no process may have learned of its claim
		w.order.excluded[r.Event.ID] = true
	}
	e := w.ids[r.Event.ID]
	if e == nil || r.Target == nil {
		return // nothing of it came over the wire, so far
	}
	t := e.told[r.Target.Subscription]
	if t == nil {
		t = &told{}
		e.told[r.Target.Subscription] = t
	}
	switch {
	case r.Lost:
		w.count("results that came too late")
		t.lost = append(t.lost, r.Result)
	case r.Decision.Status == sender.StatusDelivered || r.Decision.Status == sender.StatusDeadLettered:
		t.end = max(t.end, r.Result.Number)
	}
}

// claimed notes what a step has claimed, when it was answered.
func (w *witness) claimed(c *dispatch.Claims) {
	took := time.Since(c.Now)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range c.Claimed {
		if d.Target != nil && d.Event.ID != "" {
			w.claims[d.Event.ID] = append(w.claims[d.Event.ID], claim{d.Target.Subscription, d.Number, took})
		}
	}
}

// begun returns the latest time at which an attempt may have begun. An attempt's record
// counts from the database's time when its claim began, so it does not have the time that
// the claim took. A claim can wait for a lock and see what was done meanwhile.
func (w *witness) begun(event, subscription string, a *sender.Attempt) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var took time.Duration
	for _, c := range w.claims[event] {
		if c.subscription == subscription && c.number == a.Number {
			took = max(took, c.took)
		}
	}
	return a.StartedAt.Add(took)
}

// redelivers notes that a delivery is being redelivered, and the time of the call.
func (w *witness) redelivers(eventID, subscription string, do func() error) error {
	w.mu.Lock()
	w.order.excluded[eventID] = true
	e, at := w.ids[eventID], 0
	if e != nil {
		at = len(e.again)
		e.again = append(e.again, span{what: subscription, from: time.Now()})
	}
	w.mu.Unlock()
	err := do()
	if e != nil {
		w.mu.Lock()
		e.again[at].to = time.Now()
		if err == nil { // if it was pruned, there is nothing to look at again
			e.unchecked()
		}
		w.mu.Unlock()
	}
	return err
}

// makes notes that a row which stays by design is about to be made.
func (w *witness) makes(table string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made[table]++
}

// conceal makes all logs be searched for a secret from now on.
func (w *witness) conceal(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets = append(w.secrets, strings.TrimPrefix(text, "whsec_"))
}

// search looks for secrets, and for events' data, where neither may be.
func (w *witness) search(where string, b []byte) {
	w.mu.Lock()
	secrets := w.secrets
	w.mu.Unlock()
	text := string(b)
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			w.add("I13", "a secret is in %s", where)
		}
	}
	if strings.Contains(text, canary) {
		w.add("I13", "what an event says is in %s: %.300s", where, text)
	}
}

// canary is in every event's data.
const canary = "only-for-the-receiver"

// Write implements io.Writer. All logs go to it.
func (w *witness) Write(line []byte) (int, error) {
	w.count("log records")
	w.search("a log", line)
	return len(line), nil
}

// fed notes an event of the feed.
func (w *witness) fed(id string, body []byte) {
	c, err := parse(body)
	if err != nil || c.ID != id {
		w.add("I4", "event %s has another body in the feed: %v", id, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.known(c, body)
	if e.inFeed++; e.inFeed > 1 {
		w.add("feed", "event %s was in the feed twice", id)
	}
	if c.Type == jobs.CompletedType {
		w.told[c.Object.ID]++
	}
}

// some returns the events that match.
func (w *witness) some(choose func(e *event) bool) (chosen []*event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.nonces {
		if choose(e) {
			chosen = append(chosen, e)
		}
	}
	for _, e := range w.ids {
		if e.nonce == 0 && choose(e) {
			chosen = append(chosen, e)
		}
	}
	slices.SortFunc(chosen, func(a, b *event) int { return a.began.Compare(b.began) })
	return chosen
}

func (w *witness) idOf(e *event) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.id
}

// forget drops an event that the library has pruned.
func (w *witness) forget(e *event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nonces, e.nonce)
	delete(w.ids, e.id)
	delete(w.claims, e.id)
}
