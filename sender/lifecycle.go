package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
)

// maxReason bounds why a subscription was disabled.
const maxReason = 1024

// TestEventType is the type of the event that SendTest and SendSecretTest publish.
const TestEventType = "webhook.test"

// Pause stops a subscription's deliveries until it is resumed: they are held, and
// so are those of events to come. Attempts in flight are left to end. Pausing a
// paused one changes nothing. ErrNotFound; ErrStatus: it is disabled or closing.
// The cost does not depend on the backlog.
func (r *Registry[Tx]) Pause(ctx context.Context, id string) error {
	return r.store.InTx(ctx, func(tx Tx) error { return r.PauseTx(ctx, tx, id) })
}

// PauseTx is Pause in the caller's transaction.
func (r *Registry[Tx]) PauseTx(ctx context.Context, tx Tx, id string) error {
	return r.store.HoldSubscriptionTx(ctx, tx, id, SubscriptionPaused, "")
}

// Disable stops a subscription's deliveries as Pause does, in the name of the
// operator: its owner sees that it is disabled, and why (up to 1024 bytes).
// ErrNotFound; ErrStatus: it is closing; ErrInvalid: the reason.
func (r *Registry[Tx]) Disable(ctx context.Context, id, reason string) error {
	return r.store.InTx(ctx, func(tx Tx) error { return r.DisableTx(ctx, tx, id, reason) })
}

// DisableTx is Disable in the caller's transaction.
func (r *Registry[Tx]) DisableTx(ctx context.Context, tx Tx, id, reason string) error {
	if reason == "" || len(reason) > maxReason || ident.Storable("", reason) != nil {
		return fmt.Errorf("%w reason: it must be 1 to %d bytes of UTF-8 without NUL", ErrInvalid, maxReason)
	}
	return r.store.HoldSubscriptionTx(ctx, tx, id, SubscriptionDisabled, reason)
}

// Resume makes a paused or disabled subscription active again. take says which of the held
// deliveries are sent: all of them (the zero value), none, or those of events published
// since a time. They are due at once, with their schedules anew, while attempt numbers go
// on. The others are cancelled. Resuming an active one changes nothing. ErrNotFound;
// ErrStatus: it is closing. A *RetentionError, and nothing is changed: an event that would
// be sent was published before take.NotBefore. If that is zero and take.Force is not set,
// the bound is Retention.Reach. The cost does not depend on the backlog.
func (r *Registry[Tx]) Resume(ctx context.Context, id string, take Resume) error {
	return r.store.InTx(ctx, func(tx Tx) error { return r.ResumeTx(ctx, tx, id, take) })
}

// ResumeTx is Resume in the caller's transaction.
func (r *Registry[Tx]) ResumeTx(ctx context.Context, tx Tx, id string, take Resume) error {
	if take.None && !take.Since.IsZero() {
		return fmt.Errorf("%w resume: it takes none, or those since a time, not both", ErrInvalid)
	}
	if take.NotBefore.IsZero() && !take.Force {
		take.NotBefore = r.keeps.NotBefore(r.now())
	}
	return r.store.ResumeSubscriptionTx(ctx, tx, id, take)
}

// Close begins a subscription's deletion: it still gets what was committed before, by the
// schedule, and then it is gone. One that is paused or disabled is deleted at once. Then
// its settings are erased as by Unsubscribe. Closing it again changes nothing.
// ErrNotFound. To cancel what is pending, too, use Unsubscribe.
func (r *Registry[Tx]) Close(ctx context.Context, id string) error {
	return r.store.InTx(ctx, func(tx Tx) error { return r.CloseTx(ctx, tx, id) })
}

// CloseTx is Close in the caller's transaction. Events that were published in it before
// this call are still delivered. Events that others commit between the call and the commit
// are accepted, and not delivered. So make it the last call of the transaction.
func (r *Registry[Tx]) CloseTx(ctx context.Context, tx Tx, id string) error {
	return r.store.CloseSubscriptionTx(ctx, tx, id)
}

// DeleteSubscriber deletes a subscriber: its subscriptions are closed, and its
// secrets are destroyed once the last of them is gone. From the commit on nothing
// can be published to it or registered for it, and its id is never in use again.
// ErrNotFound.
func (r *Registry[Tx]) DeleteSubscriber(ctx context.Context, id string) error {
	return r.store.InTx(ctx, func(tx Tx) error { return r.DeleteSubscriberTx(ctx, tx, id) })
}

// DeleteSubscriberTx is DeleteSubscriber in the caller's transaction. The event that
// tells of the deletion is to be published in it before this call: then the
// subscriber's own subscriptions still get it. Until the commit others can publish to the
// subscriber, and its subscriptions do not get what they commit after the call. So make it
// the last call of the transaction.
func (r *Registry[Tx]) DeleteSubscriberTx(ctx context.Context, tx Tx, id string) error {
	return r.store.DeleteSubscriberTx(ctx, tx, id)
}

// SendTest publishes an event of type TestEventType to a subscription alone,
// whatever its filter says, so that its owner can see it arrive. The Ref has the
// delivery's id. ErrNotFound; ErrStatus: it is not active.
func (r *Registry[Tx]) SendTest(ctx context.Context, id string) (ref Ref, err error) {
	err = r.store.InTx(ctx, func(tx Tx) error {
		ref, err = r.SendTestTx(ctx, tx, id)
		return err
	})
	return ref, err
}

// SendTestTx is SendTest in the caller's transaction.
func (r *Registry[Tx]) SendTestTx(ctx context.Context, tx Tx, id string) (Ref, error) {
	s, err := r.testable(ctx, tx, id)
	if err != nil {
		return Ref{}, err
	}
	return r.publishTest(ctx, tx, s, Object{Type: "subscription", ID: id})
}

// SendSecretTest publishes a test event as SendTest does. The event is signed with the
// newest secret of the subscriber alone, even if that secret waits for its SignFrom. So
// the owner sees during a rotation whether its receiver knows the new secret, while the
// old one still verifies everything else. The event is about the secret: its object has
// the type "secret" and the secret's id. Once that secret has ended, the event is signed
// as all others. ErrNotFound; ErrStatus: it is not active.
func (r *Registry[Tx]) SendSecretTest(ctx context.Context, id string) (ref Ref, err error) {
	err = r.store.InTx(ctx, func(tx Tx) error {
		ref, err = r.SendSecretTestTx(ctx, tx, id)
		return err
	})
	return ref, err
}

// SendSecretTestTx is SendSecretTest in the caller's transaction.
func (r *Registry[Tx]) SendSecretTestTx(ctx context.Context, tx Tx, id string) (Ref, error) {
	s, err := r.testable(ctx, tx, id)
	if err != nil {
		return Ref{}, err
	}
	k, err := r.store.SubscriberKeyringTx(ctx, tx, s.Subscriber)
	if err != nil {
		return Ref{}, err
	}
	valid := inForce(k.Secrets, r.now())
	if len(valid) == 0 {
		return Ref{}, errNoSecret(s.Subscriber)
	}
	return r.publishTest(ctx, tx, s, Object{Type: secretObject, ID: valid[len(valid)-1].ID})
}

// secretObject is the type of a secret as an event's object.
const secretObject = "secret"

// TestedSecret returns the id of the one secret that is to sign an event that
// SendSecretTest published; "" for other events. The Dispatcher asks it.
func TestedSecret(e *EventInfo) string {
	if e.Type == TestEventType && e.Object.Type == secretObject {
		return e.Object.ID
	}
	return ""
}

// testable returns a subscription to which a test can be sent.
func (r *Registry[Tx]) testable(ctx context.Context, tx Tx, id string) (Subscription, error) {
	s, err := r.store.SubscriptionTx(ctx, tx, SubscriptionKey{ID: id})
	if err == nil && s.Status != SubscriptionActive {
		err = fmt.Errorf("%w: subscription %q is %s: a test event goes to an active one", ErrStatus, id, s.Status)
	}
	return s, err
}

func (r *Registry[Tx]) publishTest(ctx context.Context, tx Tx, s Subscription, about Object) (Ref, error) {
	now := r.now()
	e := Event{
		Type: TestEventType, Object: about, Subscriber: s.Subscriber, Subscription: s.ID,
		Data: json.RawMessage(`{"sent_at":"` + now.UTC().Format(time.RFC3339) + `"}`),
	}
	d, err := e.Draft(now, maxAnnouncement)
	if err != nil {
		return Ref{}, err
	}
	refs, err := r.store.PublishTx(ctx, tx, []Draft{d})
	if err != nil {
		return Ref{}, err
	}
	return refs[0], nil
}
