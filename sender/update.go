package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
)

// SubscriptionChange lists the fields to change. A nil field stays
// as it is.
type SubscriptionChange struct {
	URL         *string
	EventTypes  []string // as in NewSubscription: a list that is not nil has one or more
	Filter      *string  // as in NewSubscription: "" removes it
	Description *string

	// Settings are all of them, except the certificate, which has fields of its own: what is
	// left out is gone, and so is what others have changed since they were read. To change
	// some, give EditSettings.
	Settings *Settings
	// EditSettings, in place of Settings, changes the settings that are given to it. They are
	// those that the subscription has when it is changed, so that what others change at the
	// same time stays. It is called once or twice, in the transaction too, and must do nothing
	// else.
	EditSettings func(*Settings)

	ClientCertificate       *ClientCertificate
	RemoveClientCertificate bool
}

// Update changes a subscription. Deliveries that are claimed later go to the new URL under
// the new settings, those that exist already included. New event types and a new filter
// decide about the events that are expanded later. If a type is asked for anew, only its
// events that are committed after the change are delivered. A decision about an event
// stays as it is. Fields that others change at the same time stay changed. A new URL is
// challenged as by Subscribe. The URL and the filter of an implicit one stay as they are.
// ErrNotFound, ErrInvalid (a *FieldError for each field that is refused), ErrChallenge,
// ErrProxy.
func (r *Registry[Tx]) Update(ctx context.Context, id string, c SubscriptionChange) (s Subscription, err error) {
	if r.challenger != nil && c.URL != nil {
		was, err := r.Subscription(ctx, id)
		if err != nil {
			return Subscription{}, err
		}
		s, err := r.changed(was, c)
		if err != nil {
			return Subscription{}, err
		}
		if s.URL != was.URL {
			if err := r.challenge(ctx, s); err != nil {
				return Subscription{}, err
			}
		}
	}
	err = r.store.InTx(ctx, func(tx Tx) error {
		s, err = r.UpdateTx(ctx, tx, id, c)
		return err
	})
	return s, err
}

// UpdateTx is Update in the caller's transaction. It challenges nobody, even if the
// configuration has a Challenger.
func (r *Registry[Tx]) UpdateTx(ctx context.Context, tx Tx, id string, c SubscriptionChange) (Subscription, error) {
	was, err := r.store.SubscriptionTx(ctx, tx, SubscriptionKey{ID: id, ToChange: true})
	if err != nil {
		return Subscription{}, err
	}
	s, err := r.changed(was, c)
	if err != nil {
		return Subscription{}, err
	}
	return s, r.store.UpdateSubscriptionTx(ctx, tx, s)
}

// changed is a subscription as it is to be after a change.
func (r *Registry[Tx]) changed(s Subscription, c SubscriptionChange) (Subscription, error) {
	n := NewSubscription{
		Subscriber: s.Subscriber, URL: s.URL, EventTypes: s.EventTypes, Filter: s.Filter.String(), Description: s.Description, Settings: s.Settings, ClientCertificate: c.ClientCertificate,
	}
	n.Settings.SealedCertificate = nil
	if err := s.Settings.Unreadable(); err != nil && c.Settings == nil {
		return Subscription{}, fmt.Errorf("%w change: subscription %q: settings: %w", ErrInvalid, s.ID, err)
	}
	if err := readTypes(s); err != nil && c.EventTypes == nil {
		return Subscription{}, fmt.Errorf("%w change: %w", ErrInvalid, err)
	}
	if err := s.Filter.Unreadable(); err != nil && c.Filter == nil {
		return Subscription{}, fmt.Errorf("%w change: subscription %q: give it another filter, or none: %w", ErrInvalid, s.ID, err)
	}
	if c.URL != nil {
		n.URL = *c.URL
	}
	if c.EventTypes != nil {
		n.EventTypes = c.EventTypes
	}
	if c.Filter != nil {
		n.Filter = *c.Filter
	}
	if c.Description != nil {
		n.Description = *c.Description
	}
	if c.Settings != nil {
		n.Settings = *c.Settings
		n.Settings.unknown, n.Settings.unread, n.Settings.unreadable = s.Settings.unknown, nil, nil
		if bytes.Equal(n.Settings.SealedCertificate, s.Settings.SealedCertificate) { // its own settings, changed
			n.Settings.SealedCertificate = nil
		}
	}
	if c.EditSettings != nil {
		if c.Settings != nil {
			return Subscription{}, fmt.Errorf("%w change: settings are given and edited: do one of them", ErrInvalid)
		}
		n.Settings.Headers, n.Settings.RetryDelays = maps.Clone(n.Settings.Headers), slices.Clone(n.Settings.RetryDelays)
		c.EditSettings(&n.Settings)
		n.Settings.SealedCertificate, n.Settings.unknown = nil, s.Settings.unknown
	}
	if s.Implicit && (n.URL != s.URL || c.EventTypes != nil) {
		return Subscription{}, fmt.Errorf("%w change: subscription %q is implicit: its URL and its event types follow from what it is for", ErrInvalid, s.ID)
	}
	if c.RemoveClientCertificate {
		if c.ClientCertificate != nil {
			return Subscription{}, fmt.Errorf("%w change: a client certificate is given and removed: do one of them", ErrInvalid)
		}
		s.Settings.SealedCertificate = nil
	}
	types := s.EventTypes
	if s.Implicit { // it asks for none
		n.EventTypes = nil
	}
	s, err := r.validated(n, s)
	if s.Implicit {
		s.EventTypes = types
	}
	return s, err
}

var errUnreadTypes = errors.New("its stored event types cannot be read: give it new ones")

// readTypes returns an error if a subscription's event types are stored in a form that cannot
// be read. A store reads none then, and goes by what it asked for before.
func readTypes(s Subscription) error {
	if len(s.EventTypes) > 0 || s.Implicit {
		return nil
	}
	return fmt.Errorf("subscription %q: %w", s.ID, errUnreadTypes)
}

// LogValue shows the settings as Settings.LogValue does, and nothing of the certificate. fmt
// needs no method for that: it follows no pointer within a value without asking what is there.
func (c SubscriptionChange) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("%+v", c))
}
