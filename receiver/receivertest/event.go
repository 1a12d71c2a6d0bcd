package receivertest

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/newid"
)

// Event is an event to send. Its fields are not checked, so that tests can send events
// that no sender should.
type Event struct {
	ID         string
	Type       string
	OccurredAt time.Time
	Object     dedup.Object
	Version    int64
	Data       any // left out if nil
}

// NewEvent returns a valid event with a new id and the type OBJECTTYPE.updated. With a
// version that is not above the receiver's, it is a stale one.
func NewEvent(objectType, objectID string, version int64) Event {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return Event{
		ID: newid.New("evt_", now), Type: objectType + ".updated", OccurredAt: now,
		Object: dedup.Object{Type: objectType, ID: objectID}, Version: version,
	}
}

// encode returns the same bytes at every call.
func (e Event) encode() ([]byte, error) {
	return json.Marshal(struct {
		ID         string    `json:"id"`
		Type       string    `json:"type"`
		OccurredAt time.Time `json:"occurred_at"`
		Object     object    `json:"object"`
		Version    int64     `json:"version"`
		Data       any       `json:"data,omitempty"`
	}{e.ID, e.Type, e.OccurredAt, object(e.Object), e.Version, e.Data})
}

type object struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Shuffled returns copies of each event in an order that depends on seed alone. That
// order is the worst that at-least-once delivery may bring. Afterwards each event must
// have had at most one effect, and every object must be at its newest version.
func Shuffled(seed uint64, copies int, events ...Event) []Event {
	var out []Event
	for range copies {
		out = append(out, events...)
	}
	rnd := rand.New(rand.NewPCG(seed, seed))
	rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
