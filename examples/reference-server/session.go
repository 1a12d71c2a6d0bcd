package main

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
)

// sessionLife is how long the console is open once somebody has signed in.
const sessionLife = 2 * time.Hour

const sessionCookie = "surehook_console"

// sessions are kept in the database. So one ends when its owner signs out, whatever process
// was asked, and copies of the cookie end with it. They are found by a hash that is keyed
// with the operator's token: with another one they all end.
type sessions struct {
	db   *database
	keys [][]byte // the newest first
}

func newSessions(db *database, keys []sender.SealingKey, operatorHash string) (*sessions, error) {
	s := &sessions{db: db}
	for _, key := range keys {
		own, err := hkdf.Key(sha256.New, key.Key, []byte(operatorHash), "surehook reference server: sessions", keySize)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, own)
	}
	return s, nil
}

// rowOf is the id of a cookie's row.
func rowOf(key []byte, cookie string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(cookie))
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *sessions) begin(w http.ResponseWriter, r *http.Request) error {
	cookie := rand.Text()
	err := s.db.inTx(r.Context(), func(tx *sql.Tx) error {
		_, err := s.db.exec(r.Context(), tx, "INSERT INTO server_sessions VALUES ($1, $2)", rowOf(s.keys[0], cookie), time.Now().Add(sessionLife).UnixMicro())
		return err
	})
	if err == nil {
		setSession(w, r, cookie, int(sessionLife.Seconds()))
	}
	return err
}

// end ends the session, and has the browser forget its cookie.
func (s *sessions) end(w http.ResponseWriter, r *http.Request) error {
	setSession(w, r, "", -1)
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	return s.db.inTx(r.Context(), func(tx *sql.Tx) error {
		for _, key := range s.keys {
			if _, err := s.db.exec(r.Context(), tx, "DELETE FROM server_sessions WHERE id = $1", rowOf(key, cookie.Value)); err != nil {
				return err
			}
		}
		return nil
	})
}

func setSession(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: value, Path: consoleRoot + "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// This program speaks HTTP; what stands before it may speak HTTPS.
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// valid tells whether a request is of somebody who has signed in.
func (s *sessions) valid(r *http.Request) (bool, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return false, nil //nolint:nilerr // there is none
	}
	for _, key := range s.keys {
		var n int
		err := s.db.row(r.Context(), nil, "SELECT count(*) FROM server_sessions WHERE id = $1 AND expires_at > $2", rowOf(key, cookie.Value), time.Now().UnixMicro()).Scan(&n)
		if err != nil || n > 0 {
			return n > 0, err
		}
	}
	return false, nil
}

// forget removes the sessions that have ended.
func (s *sessions) forget(ctx context.Context) error {
	return s.db.inTx(ctx, func(tx *sql.Tx) error {
		_, err := s.db.exec(ctx, tx, "DELETE FROM server_sessions WHERE expires_at <= $1", time.Now().UnixMicro())
		return err
	})
}
