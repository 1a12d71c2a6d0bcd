package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
)

// A notice's event is never posted to the subscription that it is about: the contract says
// so. The library makes one exception: a subscription that names the event's type exactly
// gets it. So the filter of such a subscription has a clause here that keeps its own notices
// out.

// notices are the types of the notices' events that can be about a subscription.
var notices = []string{string(sender.NoticeDeadLettered), string(sender.NoticeFailing), string(sender.NoticeDisabled), string(sender.NoticeReplayFinished)}

// withoutOwn is the filter of a subscription that asks for types, with that clause if it is
// needed. A filter that cannot be parsed stays as it is: the registry says what is wrong.
func withoutOwn(id string, types []string, given string) string {
	// No event of anybody else's is about such an object.
	clause := `"not":{"data.subscription_id":"` + id + `","object.type":{"prefix":"surehook."}}`
	alone := "{" + clause + "}"
	text := ""
	if given != "" {
		f, err := filter.Parse([]byte(given))
		if err != nil {
			return given
		}
		text = f.String()
	}
	named := slices.ContainsFunc(types, func(asked string) bool { return slices.Contains(notices, asked) })
	switch {
	case !named && sameJSON(text, alone):
		return ""
	case !named || has(text, alone):
		return given
	case text == "":
		return alone
	}
	// A member beside the others, unless there is one of its name: no bound of a filter is
	// reached sooner than need be.
	if beside := "{" + clause + "," + text[1:]; parses(beside) {
		return beside
	}
	return `{"and":[` + alone + "," + text + "]}"
}

// has tells whether a filter has the clause beside its others. A client that has read it may
// send its members in another order.
func has(text, clause string) bool {
	var root struct {
		Not json.RawMessage   `json:"not"`
		And []json.RawMessage `json:"and"`
	}
	if json.Unmarshal([]byte(text), &root) != nil {
		return false
	}
	return sameJSON(`{"not":`+string(root.Not)+"}", clause) || slices.ContainsFunc(root.And, func(part json.RawMessage) bool { return sameJSON(string(part), clause) })
}

// sameJSON tells whether two texts are the same JSON.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func parses(text string) bool {
	_, err := filter.Parse([]byte(text))
	return err == nil
}

// subscribeTx is the registry's SubscribeTx, without the subscription's own notices.
func (s *service) subscribeTx(ctx context.Context, tx *sql.Tx, n sender.NewSubscription) (sender.Subscription, error) {
	made, err := s.registry.SubscribeTx(ctx, tx, n)
	if err != nil {
		return sender.Subscription{}, err
	}
	now := made.Filter.String()
	wanted := withoutOwn(made.ID, made.EventTypes, now)
	if wanted == now {
		return made, nil
	}
	return s.registry.UpdateTx(ctx, tx, made.ID, sender.SubscriptionChange{Filter: &wanted})
}

// changeWithoutOwn is a change of a subscription, without its own notices.
func changeWithoutOwn(was *sender.Subscription, c sender.SubscriptionChange) sender.SubscriptionChange {
	types, now := was.EventTypes, was.Filter.String()
	if c.EventTypes != nil {
		types = c.EventTypes
	}
	if c.Filter != nil {
		now = *c.Filter
	} else if was.Filter.Unreadable() != nil {
		return c // it must be replaced first
	}
	if wanted := withoutOwn(was.ID, types, now); wanted != now {
		c.Filter = &wanted
	}
	return c
}
