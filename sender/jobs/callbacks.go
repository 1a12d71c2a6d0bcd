package jobs

import (
	"context"
	"errors"
	"log/slog"

	"github.com/surehook/surehook/sender"
)

// CompletedType is the type of the event that announces a completed job.
const CompletedType = "job.completed"

// ObjectType is the type of that event's object, whose id is the job's.
const ObjectType = "job"

// CallbacksConfig adjusts Callbacks. A nil config and zero fields mean the defaults.
type CallbacksConfig struct {
	// Logger gets the callbacks that cannot be delivered any more. The default is
	// slog.Default.
	Logger *slog.Logger
}

// Callbacks is an Announcer that publishes the event job.completed with the status as its
// data: {"status":"succeeded"}. The library gives its version, as for every event: it is above
// those of events that the application has published about the job, and of a completion that a
// restore of the database has lost. The event goes to the job's callback URL alone, signed with
// the secret of the job's owner, by the schedule of every delivery: see sender.Callback. It is
// safe for concurrent use.
type Callbacks[Tx any] struct {
	registry  *sender.Registry[Tx]
	publisher *sender.Publisher[Tx]
	logger    *slog.Logger
}

var _ Announcer[int] = (*Callbacks[int])(nil)

// NewCallbacks returns Callbacks that publish through a sender on the same database as
// the jobs' store. The registry decides which callback URLs are allowed.
func NewCallbacks[Tx any](registry *sender.Registry[Tx], publisher *sender.Publisher[Tx], cfg *CallbacksConfig) (*Callbacks[Tx], error) {
	var errs []error
	if registry == nil {
		errs = append(errs, errors.New("jobs: NewCallbacks needs a registry, which finds where callbacks go"))
	}
	if publisher == nil {
		errs = append(errs, errors.New("jobs: NewCallbacks needs a publisher"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c := &Callbacks[Tx]{registry: registry, publisher: publisher, logger: slog.Default()}
	if cfg != nil && cfg.Logger != nil {
		c.logger = cfg.Logger
	}
	return c, nil
}

// AdmitTx implements Announcer. It returns sender.ErrInvalid, with the reason, if the
// URL is refused, and sender.ErrNotFound if the owner is not registered as a
// subscriber.
func (c *Callbacks[Tx]) AdmitTx(ctx context.Context, tx Tx, owner, url string) (string, error) {
	to, err := c.registry.CallbackTx(ctx, tx, owner, url)
	return to.URL, err
}

// CompletedTx implements Announcer. The owner may be deleted since, the URL may be refused
// by now, or the publisher may refuse the event itself (see sender.PublisherConfig.Check).
// Then it logs that and publishes no event, and the job is completed. Otherwise it never
// would be.
func (c *Callbacks[Tx]) CompletedTx(ctx context.Context, tx Tx, j Job) error {
	to, err := c.registry.CallbackTx(ctx, tx, j.Owner, j.CallbackURL)
	if errors.Is(err, sender.ErrNotFound) || errors.Is(err, sender.ErrInvalid) {
		c.logger.WarnContext(ctx, "a job's completion cannot be told: its owner was deleted, or its callback URL is refused by now",
			"job", j.ID, "owner", j.Owner)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = c.publisher.PublishTx(ctx, tx, to.Event(sender.Event{
		Type: CompletedType, Object: sender.Object{Type: ObjectType, ID: j.ID}, Data: map[string]Status{"status": j.Status},
	}))
	if errors.Is(err, sender.ErrInvalidEvent) {
		c.logger.ErrorContext(ctx, "a job's completion is not told: its event is refused, by PublisherConfig.Check perhaps, which should let it pass", "job", j.ID, "owner", j.Owner, "error", err)
		return nil
	}
	return err
}

// InTx implements Announcer. It is Publisher.InTx, which wakes the dispatchers of this
// process.
func (c *Callbacks[Tx]) InTx(ctx context.Context, fn func(tx Tx) error) error {
	return c.publisher.InTx(ctx, fn)
}
