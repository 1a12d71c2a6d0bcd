package main

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sessionLife is how long the console is open once somebody has signed in.
const sessionLife = 2 * time.Hour

const sessionCookie = "surehook_console"

// sessions are cookies that say until when they are valid, and are signed: nothing is
// stored, and every process on the same database takes them. With another operator
// token they all end.
type sessions struct{ key []byte }

func newSessions(sealing []byte, operatorHash string) (*sessions, error) {
	key, err := hkdf.Key(sha256.New, sealing, []byte(operatorHash), "surehook reference server: sessions", keySize)
	return &sessions{key}, err
}

func (s *sessions) sign(until string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(until))
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *sessions) begin(w http.ResponseWriter, r *http.Request) {
	until := strconv.FormatInt(time.Now().Add(sessionLife).Unix(), 10)
	setSession(w, r, until+"."+s.sign(until), int(sessionLife.Seconds()))
}

// end has the browser forget its cookie.
func (s *sessions) end(w http.ResponseWriter, r *http.Request) { setSession(w, r, "", -1) }

func setSession(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: value, Path: consoleRoot + "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// This program speaks HTTP; what stands before it may speak HTTPS.
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

func (s *sessions) valid(r *http.Request) bool {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return false
	}
	until, mac, _ := strings.Cut(cookie.Value, ".")
	if !same(mac, s.sign(until)) {
		return false
	}
	at, err := strconv.ParseInt(until, 10, 64)
	return err == nil && time.Now().Unix() < at
}
