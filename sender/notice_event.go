package sender

import (
	"encoding/json"
)

// announcement is the data of a notice's event.
type announcement struct {
	Notice       string `json:"notice_id"`
	Subscription string `json:"subscription_id,omitempty"`
	Delivery     string `json:"delivery_id,omitempty"`
	Replay       string `json:"replay_id,omitempty"`
	Percent      int    `json:"percent,omitempty"`
	Detail       string `json:"detail"`
}

// Draft makes the event of a notice, or returns false if there can be none. It is for the
// subscriptions of the addressee and of the operator that ask for its type. It is about
// the object of the notice, so that its versions order the notices of one delivery or
// subscription. Callers publish nothing about these objects, so that none of their
// transactions, however long it is open, has a version that a dispatcher waits for.
func (n Notice) Draft() (Draft, bool) {
	data, err := json.Marshal(announcement{n.ID, n.Subscription, n.Delivery, n.Replay, n.Percent, n.Detail})
	if err != nil {
		return Draft{}, false
	}
	e := Event{Type: string(n.Kind), Object: n.about(), Subscriber: n.Subscriber, OccurredAt: n.CreatedAt}
	if e.validate() != nil {
		return Draft{}, false
	}
	d, err := e.rendered(n.CreatedAt, data, maxAnnouncement)
	d.Notice, d.About = true, n.Subscription
	return d, err == nil
}

const maxAnnouncement = 64 << 10

func (n Notice) about() Object {
	switch {
	case n.Kind == NoticeDeadLettered:
		return Object{Type: reservedType + "delivery", ID: n.Delivery}
	case n.Subscription != "":
		return Object{Type: reservedType + "subscription", ID: n.Subscription}
	case n.Replay != "":
		return Object{Type: reservedType + "replay", ID: n.Replay}
	}
	return Object{Type: reservedType + "network", ID: "own"}
}
