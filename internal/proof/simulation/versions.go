package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// The payload versions: events are published in the newer one. Some subscriptions are pinned
// to the older one, until somebody pins them to the newer one.
const (
	olderVersion = "2025-03-01"
	newerVersion = "2026-11-25"
)

// converter makes the older version. Each life of each process makes other bytes, as if other
// code was deployed each time, or a converter was no pure function: I4 must hold anyway. Some
// cannot make it for a while, as if what was deployed had a mistake.
func (p *process) converter() sender.Convert {
	w, by, broken := p.w, fmt.Sprintf("process %d in its life %d", p.no, p.life), time.Time{}
	if w.fault(brokenConverter) {
		broken = w.now.Add(w.between(time.Second, 10*time.Minute))
	}
	return func(_, from, date string, data json.RawMessage) (string, json.RawMessage, error) {
		var newer newerData
		switch err := json.Unmarshal(data, &newer); {
		case date >= from:
			return from, data, nil
		case err != nil:
			return "", nil, err
		case broken.After(w.now):
			return "", nil, errConverter
		}
		older, err := json.Marshal(olderData{by, newer.Part})
		return olderVersion, older, err
	}
}

// upgrade pins a subscription to the newer version, with a filter over that.
func (w *world) upgrade(s *subscription) {
	w.say("%s is pinned to %s", s.name, newerVersion)
	settings, filter := s.settings, s.filter(newerVersion)
	settings.PayloadVersion = newerVersion
	_, err := w.registry.Update(w.ctx, s.id, sender.SubscriptionChange{Settings: &settings, Filter: &filter})
	w.fail(err)
	s.settings, s.upgraded = settings, true
}

// checkVersion checks that a delivery is in one version all the time, in one that its
// subscription asked for, and in the same bytes.
func (w *world) checkVersion(d *delivery, body []byte) {
	_, p, ok := sender.SplitBody(body)
	older := ok && p.Version == olderVersion
	switch {
	case d.body != nil && !bytes.Equal(d.body, body):
		w.violated("I4", "%s has other bytes than it had before", d.name)
	case older && d.sub.pinned != olderVersion:
		w.violated("I4", "%s is in an older version than its subscription was ever pinned to", d.name)
	case !older && ok && d.sub.pinned == olderVersion && !d.sub.upgraded:
		w.violated("I4", "%s is in a newer version than its subscription is pinned to", d.name)
	}
	d.body = body
	if older {
		w.counts["posts in an older version"]++
		return
	}
	e := d.event
	if e.body == nil {
		e.body = body
	}
	if !bytes.Equal(e.body, body) {
		w.violated("I4", "%s has other bytes than %s had before", d.name, e.name)
	}
}
