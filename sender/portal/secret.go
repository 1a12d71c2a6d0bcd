package portal

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// secretView is the page of the signing secrets. Steps has which step of a change is
// reached: 1 none, 2 the new secret waits, 3 it signs beside the old one.
type secretView struct {
	Step    int
	Newest  string // the id of the newest secret: see onShown
	Secrets []secretRow
	New     string    // the new secret, in the answer to the POST that made it, or that asked for it
	Made    time.Time // when the new one was made; zero: not known
	Signs   time.Time // when it signs by itself
	Ends    time.Time // when the old ones end
	Left    int       // of the time up to that, in per cent; -1: not known
	More    bool      // the old one can last for 24 hours more
	Shown   bool      // the secrets are shown
	Already bool      // New was made before this form was looked at
	Changed bool      // nothing was done: the secrets are not those that the form's page showed

	Endpoints []choice          // to which a test of the new secret can be sent
	Tests     []sender.Delivery // of the new secret, the newest first
	Code      snippet
	Codes     []snippet
}

// secretRow is a secret of the list.
type secretRow struct {
	sender.SubscriberSecret
	Made time.Time
	Text string // the secret; "": it is not shown
}

// Mark is the secret's state in a word and its class.
func (s *secretRow) Mark() [2]string {
	switch s.State {
	case sender.SecretWaiting:
		return [2]string{"new, waits", "warn"}
	case sender.SecretEnding:
		return [2]string{"old, ends", "warn"}
	}
	return [2]string{"signs", "ok"}
}

// Dash is the length of the ring's stroke for the time that is left.
func (v *secretView) Dash() string { return strconv.FormatFloat(188.5*float64(v.Left)/100, 'f', 1, 64) }

func (p *Portal) secret(ctx context.Context, r *http.Request) (view, error) {
	return p.secretPage(ctx, r, false, "")
}

// secretPage is the page, with the secrets themselves if they are to be shown.
func (p *Portal) secretPage(ctx context.Context, r *http.Request, show bool, fresh string) (view, error) {
	s := sessionIn(ctx)
	list, err := p.b.Registry.Secrets(ctx, s.Subscriber)
	if err != nil {
		return view{}, err
	}
	v := secretView{Step: 1, New: fresh, Shown: show, Left: -1, Codes: snippets(r.URL.Query().Get("lang"))}
	for _, c := range v.Codes {
		if c.Chosen {
			v.Code = c
		}
	}
	for _, secret := range list {
		row := secretRow{SubscriberSecret: secret, Made: newid.Time(secret.ID)}
		if show {
			row.Text = secret.Secret.Reveal()
		}
		v.Secrets = append(v.Secrets, row)
	}
	v.Newest = newestOf(list)
	if len(v.Secrets) > 1 {
		v.Step, v.Made, v.Ends = 3, v.Secrets[0].Made, v.Secrets[1].ValidUntil
		until := v.Ends
		if v.Secrets[0].State == sender.SecretWaiting {
			v.Step, v.Signs = 2, v.Secrets[0].SignsFrom
			until = v.Signs
		}
		v.Left = left(v.Made, until, p.cfg.Now())
		v.More = !v.Ends.Add(extension).After(list[1].LatestEnd)
		if err := p.secretTests(ctx, s, &v); err != nil {
			return view{}, err
		}
	}
	// A page that shows a secret is an answer to a POST, and cannot be asked for again.
	return view{title: "Signing secret", tab: "secret", live: len(v.Tests) > 0 && !show && fresh == "", data: &v}, nil
}

// testsShown is how many tests of the new secret its page lists.
const testsShown = 5

// secretTests adds where a test of the new secret can be sent, and what came of earlier ones.
func (p *Portal) secretTests(ctx context.Context, s *session, v *secretView) (err error) {
	if v.Endpoints, err = p.choices(ctx, s, "", sender.SubscriptionActive); err != nil {
		return err
	}
	q := history.DeliveryQuery{EventType: sender.TestEventType, Object: sender.Object{Type: "secret", ID: v.Secrets[0].ID}, Limit: testsShown}
	if !v.Made.IsZero() {
		q.Since = v.Made.Add(-time.Hour) // the database's clock may be behind ours; before that there is nothing to look at
	}
	v.Tests, _, err = p.b.History.ForSubscriber(s.Subscriber).Deliveries(ctx, q)
	return err
}

// left is the share of a time that is left, in per cent; -1: its beginning is not known.
func left(from, until, now time.Time) int {
	if from.IsZero() || !until.After(from) {
		return -1
	}
	return int(min(100, max(0, until.Sub(now)*100/until.Sub(from))))
}

func (p *Portal) showSecrets(ctx context.Context, r *http.Request) (outcome, error) {
	v, err := p.secretPage(ctx, r, true, "")
	return outcome{page: "secret", status: http.StatusOK, view: v}, err
}

func newestOf(list []sender.SubscriberSecret) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].ID
}

// changed answers a form whose page showed another newest secret than there is: it is sent a
// second time, or the secrets were changed in another window. Then it would make one secret
// more, or end one that the receiver still needs. It shows how the secrets are.
func (p *Portal) changed(ctx context.Context, r *http.Request) (outcome, error) {
	v, err := p.secretPage(ctx, r, false, "")
	if err != nil {
		return outcome{}, err
	}
	v.data.(*secretView).Changed = true
	return outcome{page: "secret", status: http.StatusConflict, view: v, unchanged: true}, nil
}

// ifShown does something with the secrets if the newest of them is still the one that the form's
// page showed. Otherwise the error is sender.ErrNotNewest.
func (p *Portal) ifShown(ctx context.Context, r *http.Request, do func(subscriber, newest string) (outcome, error)) (outcome, error) {
	s, shown := sessionIn(ctx), r.PostForm.Get("newest")
	list, err := p.b.Registry.Secrets(ctx, s.Subscriber)
	if err == nil && shown != newestOf(list) {
		err = sender.ErrNotNewest
	}
	if err != nil {
		return outcome{}, err
	}
	return do(s.Subscriber, shown)
}

// onShown is ifShown, and shows how the secrets are if nothing was done.
func (p *Portal) onShown(ctx context.Context, r *http.Request, do func(subscriber, newest string) (outcome, error)) (outcome, error) {
	o, err := p.ifShown(ctx, r, do)
	if errors.Is(err, sender.ErrNotNewest) {
		return p.changed(ctx, r)
	}
	return o, err
}

// overlaps are how long the old secret may stay valid, by the form's values.
var overlaps = map[string]time.Duration{"1": 24 * time.Hour, "3": 3 * 24 * time.Hour, "7": 7 * 24 * time.Hour, "30": 30 * 24 * time.Hour}

// rotate makes a new secret. It waits for half of the overlap, unless the customer has it
// sign before.
func (p *Portal) rotate(ctx context.Context, r *http.Request) (outcome, error) {
	overlap, ok := overlaps[r.PostForm.Get("overlap")]
	if !ok {
		return outcome{}, badInput("Say for how long the old secret stays valid: 1, 3, 7 or 30 days.")
	}
	o, err := p.ifShown(ctx, r, func(subscriber, newest string) (outcome, error) {
		secret, _, err := p.b.Registry.RotateSecret(ctx, subscriber, &sender.Rotation{Overlap: overlap, SignFrom: p.cfg.Now().Add(overlap / 2), IfNewest: newest})
		if err != nil {
			return outcome{}, err
		}
		v, err := p.secretPage(ctx, r, false, secret.Reveal())
		return outcome{page: "secret", status: http.StatusOK, view: v}, err
	})
	if errors.Is(err, sender.ErrNotNewest) {
		return p.madeAlready(ctx, r)
	}
	return o, err
}

// madeAlready answers a form that would make a second new secret. A browser that has sent it
// twice shows the last answer alone: so it has the secret that the first one has made.
func (p *Portal) madeAlready(ctx context.Context, r *http.Request) (outcome, error) {
	list, err := p.b.Registry.Secrets(ctx, sessionIn(ctx).Subscriber)
	if err != nil {
		return outcome{}, err
	}
	if len(list) < 2 || list[1].ID != r.PostForm.Get("newest") {
		return p.changed(ctx, r)
	}
	v, err := p.secretPage(ctx, r, false, list[0].Secret.Reveal())
	if err != nil {
		return outcome{}, err
	}
	v.data.(*secretView).Already = true
	return outcome{page: "secret", status: http.StatusOK, view: v, did: "show the new secret"}, nil
}

func (p *Portal) activate(ctx context.Context, r *http.Request) (outcome, error) {
	return p.onShown(ctx, r, func(subscriber, _ string) (outcome, error) {
		return outcome{to: "secret", said: "activated"}, p.b.Registry.ActivateSecret(ctx, subscriber)
	})
}

// testSecret sends a test that is signed with the new secret alone.
func (p *Portal) testSecret(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PostForm.Get("endpoint")
	if id == "" {
		return "", "", badInput("Say to which endpoint the test is sent.")
	}
	e, err := p.ownNamed(ctx, id)
	if err == nil {
		_, err = p.b.Registry.SendSecretTest(ctx, e.ID)
	}
	return "secret", "secrettest", err
}

// extension is by how much the end of the old secret is put off at a time.
const extension = 24 * time.Hour

// Until is up to when the form that puts off the end has the old secret last. It says a time,
// and not by how much, so that a form that is sent twice puts it off once.
func (v *secretView) Until() string { return v.Ends.Add(extension).UTC().Format(time.RFC3339Nano) }

// extend puts off the end of the old secret.
func (p *Portal) extend(ctx context.Context, r *http.Request) (outcome, error) {
	return p.onShown(ctx, r, func(subscriber, _ string) (outcome, error) {
		until, err := time.Parse(time.RFC3339Nano, r.PostForm.Get("until"))
		if err != nil {
			return outcome{}, badInput("The form does not say until when the old secret lasts: load the page again, and repeat what you did.")
		}
		_, err = p.b.Registry.ExtendSecret(ctx, subscriber, until)
		return outcome{to: "secret", said: "extended"}, err
	})
}

func (p *Portal) retire(ctx context.Context, r *http.Request) (outcome, error) {
	return p.onShown(ctx, r, func(subscriber, newest string) (outcome, error) {
		return outcome{to: "secret", said: "retired"}, p.b.Registry.RetireBefore(ctx, subscriber, newest)
	})
}
