package bedtest

import (
	"context"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
)

// StoreWith returns the Bed's store with settings for all subscriptions, which no registry
// has checked: as if an older release or another program had written them.
func (b *Bed) StoreWith(settings sender.Settings) dispatch.Store {
	return storeWith{b.Store, settings}
}

// DispatcherWith is Dispatcher on StoreWith.
func (b *Bed) DispatcherWith(settings sender.Settings, cfg dispatch.Config) *dispatch.Dispatcher {
	b.T.Helper()
	return b.DispatcherOn(b.StoreWith(settings), cfg)
}

type storeWith struct {
	*memory.Store
	settings sender.Settings
}

func (s storeWith) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, claims, err := s.Store.Step(ctx, p, b)
	for _, c := range claims.Claimed {
		c.Target.Settings = &s.settings
	}
	return x, claims, err
}
