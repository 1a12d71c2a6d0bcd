package portal

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/signing"
)

// Registry keeps subscribers, their secrets and their subscriptions. A *sender.Registry
// of any transaction type is one. One of your own can embed it and allow less, such as a
// number of endpoints: a *sender.FieldError is shown at its field, in its own words. By
// NewSubscription.ID a form that is sent twice makes one endpoint, so its Subscribe must heed it.
type Registry interface {
	Subscriber(ctx context.Context, id string) (sender.Subscriber, error)
	Subscriptions(ctx context.Context, subscriber, after string, limit int) ([]sender.Subscription, error)
	Subscription(ctx context.Context, id string) (sender.Subscription, error)
	Subscribe(ctx context.Context, n sender.NewSubscription) (sender.Subscription, error)
	Update(ctx context.Context, id string, c sender.SubscriptionChange) (sender.Subscription, error)
	Unsubscribe(ctx context.Context, id string) error
	Pause(ctx context.Context, id string) error
	Resume(ctx context.Context, id string, take sender.Resume) error
	SendTest(ctx context.Context, id string) (sender.Ref, error)
	SendSecretTest(ctx context.Context, id string) (sender.Ref, error)
	Secrets(ctx context.Context, subscriber string) ([]sender.SubscriberSecret, error)
	RotateSecret(ctx context.Context, subscriber string, rotation *sender.Rotation) (secret signing.Secret, previousValidUntil time.Time, err error)
	ActivateSecret(ctx context.Context, subscriber string) error
	ExtendSecret(ctx context.Context, subscriber string, until time.Time) (end time.Time, err error)
	RetireBefore(ctx context.Context, subscriber, newest string) error
}

// Backend has the parts of a sender that a portal works on, all on one store. No field
// may be nil.
type Backend struct {
	Registry Registry
	History  *history.History
	Replays  *replay.Replays
}

// Config adjusts a Portal. A nil config and zero fields mean the defaults.
type Config struct {
	// Name is the service's, in titles, and at the head where there is no Logo. The
	// default is "Webhooks".
	Name string

	// Accent is the colour of buttons, links and marks on a light ground, as #rrggbb;
	// AccentDark is that on a dark one. Each is made darker or lighter until it can be
	// read. The default is Surehook's blue, and for AccentDark, Accent.
	Accent, AccentDark string

	// Logo stands at the head, 28 px high: an https URL, or a data URL of an image
	// (data:image/…). LogoDark is that for a dark ground; the default is Logo. LogoWidth
	// is how wide it may be, from 28 to 320 px; the default is 132.
	Logo, LogoDark string
	LogoWidth      int

	// FrameAncestors are the origins whose pages may show the portal in a frame, such as
	// https://app.example.com, https://*.example.com or 'self'. The default is none.
	FrameAncestors []string

	// Return is where a visitor whose session is over is led, to open it again: a page of
	// the service, as an http or https URL. Empty: the page says so without a link.
	Return string

	// Catalogue has the events that subscribers may ask for. Without one, an endpoint's
	// event types are typed in.
	Catalogue *catalogue.Catalogue

	// DisableAfter is the Dispatcher's Policy.DisableAfter: a failing endpoint's owner
	// reads when no more is tried. 0: it is not said.
	DisableAfter time.Duration

	// Policy is the Dispatcher's PolicyOf, for endpoints that have a policy of their own:
	// DisableAfter is not looked at then. Nil: all have that one.
	Policy func(sender.Settings) sender.EffectivePolicy

	// Session is how long a session lasts. The default is 2 h, the most 24 h.
	Session time.Duration

	// Timeout bounds how long a request may take. The default is 15 s: a challenge of a
	// new URL is a part of it.
	Timeout time.Duration

	// Admit is called for each request below a session's path that has its session, before
	// anything is read for it: to bound how often one subscriber's visitors may ask. If it
	// returns false it has answered, and the request ends. It may be called concurrently. Nil:
	// all are admitted.
	Admit func(w http.ResponseWriter, r *http.Request, subscriber string) bool

	// Now is the clock of tokens, sessions and ages. The default is time.Now.
	Now func() time.Time

	// Logger gets every session that is opened, every change and every failure. The
	// default is slog.Default().
	Logger *slog.Logger
}

// Portal is an http.Handler, safe for concurrent use. It bounds by itself what reads much of the
// database, which is to count what a replay would send, or a filter pass: of one subscriber it
// counts for one request at a time, and of all together for two. The others wait, and a fifth
// request of one subscriber is answered with 429 and a Retry-After.
type Portal struct {
	b     Backend
	cfg   Config
	keys  []*derived     // newest first; pointers, which print as addresses
	inner *http.ServeMux // the pages of a session, below its path
	count *counting

	patterns []string     // of inner
	guarded  http.Handler // inner, behind the refusal of other sites' requests
	brand    []byte
	policy   string // Content-Security-Policy
}

const (
	defaultSession = 2 * time.Hour
	maxSession     = 24 * time.Hour
	defaultTimeout = 15 * time.Second
	maxForm        = 64 << 10 // bytes
)

//go:embed pages/*.html portal.js
var files embed.FS

// New returns a Portal. keys sign tokens and sessions: 32 random bytes each, the same in
// every process, newest first. The first one signs, and all of them verify. To replace a
// key, put a new one at the end in every process, then in front, and remove the old one
// after a session's time.
func New(b Backend, keys [][]byte, cfg *Config) (*Portal, error) {
	p := &Portal{b: b, count: newCounting()}
	if cfg != nil {
		p.cfg = *cfg
	}
	p.setDefaults()
	errs := p.cfg.problems()
	missing := func(is bool, what string) {
		if is {
			errs = append(errs, errors.New("sender/portal: New needs "+what))
		}
	}
	missing(b.Registry == nil, "a Registry")
	missing(b.History == nil, "a History")
	missing(b.Replays == nil, "Replays")
	missing(len(keys) == 0, "a key of 32 random bytes, or several, newest first")
	for i, key := range keys {
		d, err := derive(key)
		if err != nil {
			errs = append(errs, fmt.Errorf("sender/portal: New: key %d: %w", i+1, err))
		}
		p.keys = append(p.keys, &d)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.brand, p.policy = p.cfg.brand(), p.cfg.policy()
	p.routes()
	return p, nil
}

func (p *Portal) setDefaults() {
	c := &p.cfg
	if c.Name == "" {
		c.Name = "Webhooks"
	}
	if c.LogoWidth == 0 {
		c.LogoWidth = 132
	}
	if c.LogoDark == "" {
		c.LogoDark = c.Logo
	}
	if c.Session == 0 {
		c.Session = defaultSession
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

// ancestor is a source of frame-ancestors that names an origin.
var ancestor = regexp.MustCompile(`^(https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:([0-9]{1,5}|\*))?|'self')$`)

// problems are what is wrong with a configuration whose defaults are set.
func (c *Config) problems() (errs []error) {
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("sender/portal: Config."+format, args...))
		}
	}
	bad(!plainText(c.Name) || len(c.Name) > maxName, "Name is %q: it must be up to %d bytes of UTF-8 without control characters", c.Name, maxName)
	bad(c.Accent != "" && !isColour(c.Accent), "Accent is %q: it must be a colour such as #0b7468", c.Accent)
	bad(c.AccentDark != "" && !isColour(c.AccentDark), "AccentDark is %q: it must be a colour such as #4fcdbc", c.AccentDark)
	bad(c.Logo != "" && !isImage(c.Logo), "Logo must be an https URL, or a data URL of an image, of visible ASCII without quotation marks and backslashes: encode others by percents")
	bad(c.LogoDark != c.Logo && !isImage(c.LogoDark), "LogoDark must be as Logo")
	bad(c.LogoWidth < 28 || c.LogoWidth > 320, "LogoWidth is %d: it must be from 28 to 320", c.LogoWidth)
	for _, a := range c.FrameAncestors {
		bad(!ancestor.MatchString(a), "FrameAncestors has %q: each must be an origin such as https://app.example.com or https://*.example.com, without a path, or 'self'", a)
	}
	if c.Return != "" {
		u, err := url.Parse(c.Return)
		bad(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "", "Return is %q: it must be an http or https URL", c.Return)
	}
	bad(c.DisableAfter < 0, "DisableAfter is %v: it must not be negative", c.DisableAfter)
	bad(c.Session < time.Minute || c.Session > maxSession, "Session is %v: it must be from 1m to %v", c.Session, maxSession)
	bad(c.Timeout < 0, "Timeout is %v: it must be above 0, or 0 for the default", c.Timeout)
	return errs
}

// policy is the Content-Security-Policy of all answers.
func (c *Config) policy() string {
	p := look.CSP
	for _, logo := range []string{c.Logo, c.LogoDark} {
		if u, err := url.Parse(logo); err == nil && u.Scheme == "https" {
			p = strings.Replace(p, "img-src ", "img-src https://"+u.Host+" ", 1)
		}
	}
	if len(c.FrameAncestors) == 0 {
		return p + "; frame-ancestors 'none'"
	}
	return p + "; frame-ancestors " + strings.Join(c.FrameAncestors, " ")
}
