package history

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// MaxExamined is about how many candidates one call of a list looks at. A list
// whose filter few of them match comes in short, even empty, pages then: the end is
// an empty cursor, never a short page.
const MaxExamined = 5000

// DeliveryQuery selects deliveries. Empty fields select all.
type DeliveryQuery struct {
	Status       sender.Status
	Subscription string        // id
	Subscriber   string        // id of the subscription's owner
	Event        string        // id
	EventType    string        // exact, "prefix.*" or "*"
	Object       sender.Object // type and id, or the type alone
	Since        time.Time     // of the event's publishing: at it or later
	Until        time.Time     // of the event's publishing: before it
	Class        sender.Class  // of the last attempt
	StatusCode   int           // that the last attempt was answered with; 0: any
	Cursor       string        // of the page before
	Limit        int           // 1 to 200; 0 means 50
}

// EventQuery selects events. Empty fields select all.
type EventQuery struct {
	Type       string        // exact, "prefix.*" or "*"
	Object     sender.Object // type and id, or the type alone
	Subscriber string        // id of the one that it is addressed to
	// Viewer is the id of a subscriber who reads. They may see the events that are addressed
	// to them, or to nobody in particular. sender.Operator may see all.
	Viewer string
	Since  time.Time // published at it or later
	Until  time.Time // published before it
	Cursor string    // of the page before
	Limit  int       // 1 to 200; 0 means 50
	// Bytes, if it is not 0, has the events listed with their bodies. A page ends before the
	// event whose body would make the bodies longer than this together. The first event comes
	// whatever its size.
	Bytes int
}

// MatchesEvent tells whether the query's conditions on events hold for one. Stores
// call it.
func (q *DeliveryQuery) MatchesEvent(e sender.EventInfo) bool {
	return eventMatches(q.EventType, q.Object, q.Since, q.Until, e)
}

// MatchesLast tells whether the query's conditions on the last attempt hold for its class
// and its status code. Stores call it.
func (q *DeliveryQuery) MatchesLast(class sender.Class, code int) bool {
	return (q.Class == "" || q.Class == class) && (q.StatusCode == 0 || q.StatusCode == code)
}

// Matches tells whether the query's conditions hold for an event that is addressed
// to a subscriber. Stores call it.
func (q *EventQuery) Matches(e sender.EventInfo, subscriber string) bool {
	seen := q.Viewer == "" || q.Viewer == sender.Operator || subscriber == "" || subscriber == q.Viewer
	return seen && (q.Subscriber == "" || q.Subscriber == subscriber) && eventMatches(q.Type, q.Object, q.Since, q.Until, e)
}

func eventMatches(eventType string, object sender.Object, since, until time.Time, e sender.EventInfo) bool {
	return (eventType == "" || sender.TypeMatches(eventType, e.Type)) &&
		(object.Type == "" || object.Type == e.Object.Type) &&
		(object.ID == "" || object.ID == e.Object.ID) &&
		!e.CreatedAt.Before(since) && (until.IsZero() || e.CreatedAt.Before(until))
}

func checkEventFilter(eventType string, object sender.Object, since, until time.Time) (errs []error) {
	if eventType != "" && ident.TypePattern(eventType) != nil {
		errs = append(errs, fmt.Errorf("%w event type %q: it must be an exact type, \"prefix.*\" or \"*\"", sender.ErrInvalid, eventType))
	}
	errs = append(errs, ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "object type", Text: object.Type}, ident.Text{Name: "object id", Text: object.ID})...)
	if object.ID != "" && object.Type == "" {
		errs = append(errs, fmt.Errorf("%w object: its id %q is given without its type", sender.ErrInvalid, object.ID))
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		errs = append(errs, fmt.Errorf("%w times: nothing is published since %s and before %s: since must be the earlier one",
			sender.ErrInvalid, since.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)))
	}
	return errs
}

// NoticeQuery selects notices. Empty fields select all.
type NoticeQuery struct {
	Subscriber   string // the id of their addressee
	Subscription string
	Kind         sender.NoticeKind
	Unread       bool   // only those that nobody has acknowledged
	Cursor       string // of the page before
	Limit        int    // 1 to 200; 0 means 50
}

// Matches tells whether the query's conditions hold for a notice. Stores call it.
func (q *NoticeQuery) Matches(n *sender.Notice) bool {
	return (q.Subscriber == "" || n.Subscriber == q.Subscriber) && (q.Subscription == "" || n.Subscription == q.Subscription) &&
		(q.Kind == "" || n.Kind == q.Kind) && (!q.Unread || n.AcknowledgedAt.IsZero())
}
