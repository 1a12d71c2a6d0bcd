//go:build !race

package storetest_test

import (
	"context"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// keptBodyBreakages break how a store keeps bodies.
var keptBodyBreakages = []breakage{
	{"the last body is kept", func(s store) store { return &keptAnew{store: s, last: map[dispatch.DeliveryKey][]byte{}} }, checks{"bodies/kept"}},
	{"a body is kept without a lease", func(s store) store { return &keptByAll{store: s, all: map[dispatch.DeliveryKey][]byte{}} }, checks{"bodies/kept, leased", "bodies/kept, redacted"}},
	{"a delivery shows its event's body", func(s store) store { return &keptHidden{store: s} }, checks{"bodies/kept"}},
	{"a redaction, a prune and a release leave what is kept", func(s store) store { return &keptEver{store: s, all: map[dispatch.DeliveryKey][]byte{}} }, checks{"bodies/kept, redacted", "bodies/kept, pruned", "bodies/kept, given back"}},
}

type keptAnew struct {
	store
	last map[dispatch.DeliveryKey][]byte
}

func (s *keptAnew) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (map[dispatch.DeliveryKey][]byte, error) {
	kept, err := s.store.KeepBodies(ctx, all)
	for _, k := range all {
		if kept[k.Key] != nil && k.Body != nil {
			s.last[k.Key] = k.Body
		}
		if s.last[k.Key] != nil {
			kept[k.Key] = s.last[k.Key]
		}
	}
	return kept, err
}

type keptByAll struct {
	store
	all map[dispatch.DeliveryKey][]byte
}

func (s *keptByAll) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (map[dispatch.DeliveryKey][]byte, error) {
	kept, err := s.store.KeepBodies(ctx, all)
	for _, k := range all {
		if kept[k.Key] == nil && s.all[k.Key] == nil && k.Body != nil {
			s.all[k.Key] = k.Body
		}
		if kept[k.Key] == nil && s.all[k.Key] != nil {
			kept[k.Key] = s.all[k.Key]
		}
	}
	return kept, err
}

type keptHidden struct{ store }

func (s *keptHidden) Delivery(ctx context.Context, id string, q history.AttemptQuery) (sender.Delivery, error) {
	d, err := s.store.Delivery(ctx, id, q)
	if err == nil && d.Body != nil {
		var e sender.StoredEvent
		e, err = s.Event(ctx, d.Event.ID)
		d.Body = e.Body
	}
	return d, err
}

type keptEver struct {
	store
	all map[dispatch.DeliveryKey][]byte
}

func (s *keptEver) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (map[dispatch.DeliveryKey][]byte, error) {
	kept, err := s.store.KeepBodies(ctx, all)
	for _, k := range all {
		if kept[k.Key] != nil {
			s.all[k.Key] = kept[k.Key]
		}
		if s.all[k.Key] != nil {
			kept[k.Key] = s.all[k.Key]
		}
	}
	return kept, err
}
