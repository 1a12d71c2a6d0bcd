package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
)

const (
	notifyTimeout = time.Minute
	// A call of the Notifier that goes on for this long after the end of its context is left
	// behind, since it may never return. Then other notices have their turn.
	notifyGrace = 5 * time.Second
	// mostLeftBehind bounds these calls. While there are as many, the Notifier is not called.
	mostLeftBehind = 8
	// A notice that a lost process had claimed is given to another process after this.
	notifyLease = notifyTimeout + notifyGrace + time.Minute
	notifyIdle  = 5 * time.Second
	// A notice that was claimed by a run which ends is given to another one after this.
	notifySoon = time.Millisecond
)

// notifying gives notices to the Notifier until ctx ends. It looks for new notices when it
// is kicked, and now and then.
func (d *Dispatcher) notifying(ctx context.Context, kicked <-chan struct{}) {
	for ctx.Err() == nil {
		found, _, err := d.notify(ctx)
		if err != nil && ctx.Err() == nil {
			d.cfg.Logger.ErrorContext(ctx, "notices could not be read; they are tried again", "error", err)
		}
		if found && err == nil {
			continue
		}
		timer := time.NewTimer(notifyIdle)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-kicked:
		}
		timer.Stop()
	}
}

// notifyOnce gives the notices that are due to the Notifier. It ends before one that was not
// accepted is due again: a Notifier that takes long and accepts nothing would keep it going
// for ever.
func (d *Dispatcher) notifyOnce(ctx context.Context) error {
	var refused time.Time
	for refused.IsZero() || d.now().Sub(refused) < notifyPause(1) {
		found, accepted, err := d.notify(ctx)
		if err != nil || !found {
			return err
		}
		if !accepted && refused.IsZero() {
			refused = d.now()
		}
	}
	return nil
}

// notify gives a notice to the Notifier. It claims no other one with it: that would wait for
// this one here, and for the end of the lease if this process is lost.
func (d *Dispatcher) notify(ctx context.Context) (found, accepted bool, err error) {
	bounded, end := d.within(ctx)
	claimed, err := d.store.ClaimNotices(bounded, notifyLease, 1)
	end()
	if err != nil || len(claimed) == 0 {
		return false, false, err
	}
	n := &claimed[0]
	var again time.Duration
	if ctx.Err() != nil {
		again = notifySoon
	} else if err := d.tell(ctx, n.Notice); err != nil {
		again = notifyPause(n.Tries)
		d.cfg.Logger.ErrorContext(ctx, "the notifier did not accept a notice; it is tried again", "notice_id", n.ID, "kind", string(n.Kind), "error", err, "in", again)
	}
	// If this call is lost, the notice is given again when the lease ends.
	return true, again == 0, d.settleNotice(ctx, n.ID, again)
}

// settleNotice also settles a notice when ctx has ended: the Notifier has it, or another
// run is to give it to one now, and not after the lease. So it tries again while there is
// time: a connection that breaks once must not have the notice told twice.
func (d *Dispatcher) settleNotice(ctx context.Context, id string, again time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.Timeout)
	defer cancel()
	for pause := longerPause(0); ; pause = longerPause(pause) {
		err := d.store.SettleNotice(ctx, id, again)
		if err == nil {
			return nil
		}
		if sleep(ctx, pause); ctx.Err() != nil {
			return err
		}
	}
}

// tell gives a notice to the Notifier. It waits for it no longer than notifyTimeout and
// notifyGrace, also if ctx ends.
func (d *Dispatcher) tell(ctx context.Context, n sender.Notice) error {
	select {
	case d.telling <- struct{}{}:
	default:
		return fmt.Errorf("%d calls of it have not returned, though their contexts have ended long ago: it must heed its context", mostLeftBehind)
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	answer := make(chan error, 1)
	go func() {
		defer cancel()
		defer func() { <-d.telling }()
		err := errors.New("it ended its goroutine (runtime.Goexit): it must return")
		defer func() { answer <- err }()
		err = d.callNotifier(ctx, n)
	}()
	timer := time.NewTimer(notifyTimeout + notifyGrace)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C:
		return fmt.Errorf("it has not returned after %v, and is left behind: it must heed its context", notifyTimeout+notifyGrace)
	}
}

func (d *Dispatcher) callNotifier(ctx context.Context, n sender.Notice) (err error) {
	defer func() {
		if v := recover(); v != nil {
			d.cfg.Logger.ErrorContext(ctx, "the notifier panicked", "panic", panicText(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("it panicked: %s", panicText(v))
		}
	}()
	return d.cfg.Notifier(ctx, n)
}

// Notifier tells people of a notice: by e-mail, in a chat, on a pager. It is called until
// it returns nil, with growing pauses of up to an hour, so it may be called more than once
// for a notice. It must heed its context, which ends after a minute. A call that goes
// on after that is left behind, and its notice is given again later. Then the Notifier is
// called while earlier calls go on. If eight have been left behind, it is not called until
// one of them returns. A notice that somebody has acknowledged
// in the meantime is not sent any more.
type Notifier func(ctx context.Context, n sender.Notice) error

// notifyPause is how long a notice waits after a Notifier did not accept it.
func notifyPause(tries int) time.Duration {
	return backoff.Exponential{Base: 10 * time.Second, Max: time.Hour}.Delay(tries)
}
