package main

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
)

const portalRoot = "/portal"

// OpenPortal asks for a link to a subscriber's portal.
type OpenPortal struct {
	TTLSeconds integer `json:"ttl_seconds,omitempty" minimum:"1" maximum:"3600" default:"300" doc:"For how long the link opens the portal. A session that was opened in time lasts two hours."`
	By         string  `json:"by,omitempty" maxLength:"255" doc:"Who visits: for the log."`
}

// PortalLink is the answer.
type PortalLink struct {
	Path      string    `json:"path" doc:"The portal with the token in its fragment, from the root of the server: a browser that is led there opens it."`
	Action    string    `json:"action" doc:"Where a form can post the field token instead."`
	Token     string    `json:"token" doc:"A secret until it ends. Never put it into a path or a query."`
	ExpiresAt time.Time `json:"expires_at" doc:"When the token ends. A session that was opened goes on."`
}

type openPortal struct {
	SubscriberPath
	Keyed
	Body *OpenPortal
}

// newPortal is the library's portal. Its keys are made of the sealing keys: all processes
// on the same database have the same.
func (s *server) newPortal() (*portal.Portal, error) {
	var keys [][]byte
	for _, sealing := range s.keys {
		k, err := hkdf.Key(sha256.New, sealing.Key, nil, "surehook reference server: portal", keySize)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	types, err := eventTypes()
	if err != nil {
		return nil, err
	}
	return portal.New(portal.Backend{Registry: portalRegistry{s.registry, s.service}, History: s.history, Replays: s.replays}, keys, &portal.Config{
		Name: "Surehook reference server", Catalogue: types, Policy: s.options.policy.Of, Admit: s.admitVisitor, Logger: s.log,
	})
}

func (s *server) portalOperations() {
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/portal", id: "open-portal", summary: "Make a link to a subscriber's portal", tag: "Subscribers", who: operatorOnly, shows: true, errors: []int{http.StatusConflict}}, s.openPortal)
}

func (s *server) openPortal(ctx context.Context, c caller, in *openPortal) (*answer[PortalLink], error) {
	if in.ID == sender.Operator {
		return nil, problem(http.StatusConflict, "the operator has the console, at /console/")
	}
	link, err := once(ctx, s.answers, c, in.Key, in.Body, func(tx *sql.Tx) (PortalLink, error) { return s.portalLink(ctx, tx, in.ID, in.Body) })
	if err != nil {
		return nil, err
	}
	return &answer[PortalLink]{link}, nil
}

// portalLink makes a link to a subscriber's portal. With a nil tx it reads what is committed.
func (s *server) portalLink(ctx context.Context, tx *sql.Tx, id string, asked *OpenPortal) (PortalLink, error) {
	var name string
	err := s.db.row(ctx, tx, "SELECT name FROM server_subscribers WHERE id = $1 AND deleted_at IS NULL", id).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound("subscriber")
	}
	if err != nil {
		return PortalLink{}, err
	}
	grant := portal.Grant{Subscriber: id, Name: oneLine(name), TTL: 5 * time.Minute}
	if asked != nil {
		grant.By = oneLine(asked.By)
		if asked.TTLSeconds > 0 {
			grant.TTL = time.Duration(asked.TTLSeconds) * time.Second
		}
	}
	token, err := s.portal.Token(grant)
	if err != nil {
		return PortalLink{}, err
	}
	return PortalLink{
		Path: portalRoot + "/#" + token, Action: portalRoot + "/open", Token: token, ExpiresAt: time.Now().Add(grant.TTL).UTC().Truncate(time.Second),
	}, nil
}

// portalOf is the link of the console's pages to a subscriber's portal.
func (s *server) portalOf(ctx context.Context, subscriber, by string) (string, error) {
	link, err := s.portalLink(ctx, nil, subscriber, &OpenPortal{By: by})
	if p := (*Problem)(nil); errors.As(err, &p) && p.Status == http.StatusNotFound {
		return "", sender.ErrNotFound // it is deleted
	}
	return link.Path, err
}

// oneLine is a text as a page shows it in one line, in up to 255 bytes.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), 255)], "")
}

// admitVisitor refuses a visitor's request that is one too many. The visitors of one subscriber
// together may ask as often as its programs may.
func (s *server) admitVisitor(w http.ResponseWriter, r *http.Request, subscriber string) bool {
	if p := s.mayAsk(caller{id: portalRoot + "/" + subscriber}); p != nil {
		s.sorry(w, r, p)
		return false
	}
	return true
}

// withPortal sends what is the portal's there, and all else on.
func (s *server) withPortal(next http.Handler) http.Handler {
	pages := http.StripPrefix(portalRoot, s.portal)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == portalRoot:
			http.Redirect(w, r, portalRoot+"/", http.StatusMovedPermanently)
		case strings.HasPrefix(r.URL.Path, portalRoot+"/"):
			noteRoute(r, routePortal)
			pages.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
