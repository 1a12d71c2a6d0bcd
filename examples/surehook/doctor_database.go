package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// examine checks a database.
func examine(ctx context.Context, t *terminal, b *stored, o *doctorOptions, found *findings) error {
	keys, err := sealingKeys(o.keyFile, t)
	if err != nil {
		return err
	}
	d := b.db
	sending, receiving := checkTables(ctx, d, found)
	if d.postgres() {
		checkPostgres(ctx, d, found)
	} else {
		checkSQLite(ctx, d, found)
	}
	if receiving {
		checkSetAside(ctx, d, found)
	}
	if !sending {
		return nil
	}
	if err := d.store.Check(ctx); err != nil {
		found.add("dispatcher", fail, err.Error(), "a dispatcher would not start: mend that first")
	} else {
		found.add("dispatcher", ok, "the database is fit for one", "")
	}
	checkKey(ctx, d, keys, found)
	checkWork(ctx, b, found)
	checkTwins(ctx, b, found)
	return nil
}

// checkTables returns whether the sender's tables are there and current, and a receiver's.
func checkTables(ctx context.Context, d *database, found *findings) (sending, receiving bool) {
	all, err := d.states(ctx)
	if err != nil {
		found.failed("tables", err)
		return false, false
	}
	if present(all) == "" {
		do := "make them with surehook migrate up -sets sender (to send) or -sets dedup (to receive)"
		if d.postgres() && d.schema == "" {
			do += "; if they are in a schema, give -schema"
		}
		found.add("tables", fail, "the library has none in this database", do)
		return false, false
	}
	for _, s := range all {
		switch {
		case s.State == "absent":
		case !s.fits:
			found.add("tables", fail, fmt.Sprintf("%s is at version %d, for newer releases than this program (it knows %d)", s.Set, s.Version, s.Known), "run a newer release")
		case s.State == "behind":
			found.add("tables", fail, fmt.Sprintf("%s is at version %d of %d: %s is missing", s.Set, s.Version, s.Known, strings.Join(s.Missing, ", ")), "surehook migrate up")
		default:
			found.add("tables", ok, fmt.Sprintf("%s is at version %d", s.Set, s.Version), "")
			sending, receiving = sending || s.Set == "sender", receiving || s.Set == "dedup"
		}
	}
	return sending, receiving
}

// checkSetAside counts the dead letters of a receiver. For its sender they are delivered.
func checkSetAside(ctx context.Context, d *database, found *findings) {
	table := "surehook_dedup_dead_letters"
	if d.schema != "" {
		table = pgx.Identifier{d.schema, table}.Sanitize()
	}
	var n int64
	if err := d.sql.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		found.failed("set aside", err)
		return
	}
	if n > 0 {
		found.add("set aside", warn, counted(n, "received event was set aside as a dead letter, and is not applied", "received events were set aside as dead letters, and are not applied"),
			"read why by ListDeadLetters of the store of package dedup, mend the handler, then Receiver.ApplyDeadLetter")
	}
}

// sealingKeys reads the keys, newest first.
func sealingKeys(file string, t *terminal) (*sender.Keys, error) {
	text := t.env("SUREHOOK_SECRET_KEY")
	if file != "" {
		var err error
		if text, err = textFile("secret-key-file", file); err != nil {
			return nil, err
		}
	}
	var keys []sender.SealingKey
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' || r == ',' }) {
		k, err := sealingKey(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return sender.NewKeys(keys[0], keys[1:]...)
}

// sealingKey reads ID=BASE64, or BASE64 alone, whose id is a fingerprint, as the
// reference server's keys have it. Base64 ends with a =, and has none elsewhere.
func sealingKey(line string) (sender.SealingKey, error) {
	id, text, named := strings.Cut(line, "=")
	if !named || text == "" || text == "=" {
		id, text = "", line
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != 32 {
		return sender.SealingKey{}, errors.New("a sealing key is not 32 bytes in base64: a line must be KEY or ID=KEY")
	}
	if id == "" {
		sum := sha256.Sum256(key)
		id = hex.EncodeToString(sum[:4])
	}
	return sender.SealingKey{ID: id, Key: key}, nil
}

// checkKey opens a secret, and not only compares the keys' names.
func checkKey(ctx context.Context, d *database, keys *sender.Keys, found *findings) {
	inUse, err := d.store.SealingKeys(ctx)
	switch {
	case err != nil:
		found.failed("sealing key", err)
		return
	case len(inUse) == 0:
		found.add("sealing key", ok, "nothing is sealed yet", "")
		return
	case keys == nil:
		found.add("sealing key", warn, fmt.Sprintf("not tried: secrets are sealed with %s", keyNames(inUse)), "give -secret-key-file")
		return
	}
	if err := keys.Check(ctx, d.store); err != nil {
		found.add("sealing key", fail, err.Error(), "give the key that the secrets were sealed with, in a line ID=KEY with the ID of its sender.SealingKey")
		return
	}
	inTx := d.store.InTx
	if reader, ok := d.store.(sender.Reader[*sql.Tx]); ok { // the other one waits for who writes
		inTx = reader.InReadTx
	}
	for _, id := range inUse {
		var wrong error
		err := inTx(ctx, func(tx *sql.Tx) error {
			rings, err := d.store.KeyringsTx(ctx, tx, id, "", 1)
			for _, r := range rings {
				if _, err := keys.Keyring(r); err != nil {
					wrong = err
				}
			}
			return err
		})
		if err != nil {
			found.failed("sealing key", err)
			return
		}
		if wrong != nil {
			found.add("sealing key", fail, fmt.Sprintf("a secret that was sealed with %s does not open: %v", keyNames([]string{id}), wrong), "give the right key of that name")
			return
		}
	}
	status, do := ok, ""
	if len(inUse) > 1 {
		status, do = warn, "after a rotation, Registry.Rewrap seals everything with the current key"
	}
	found.add("sealing key", status, fmt.Sprintf("it opens what is sealed, with %s", keyNames(inUse)), do)
}

// keyNames is the stored names of sealing keys, for people.
func keyNames(stored []string) string {
	var names []string
	for _, name := range stored {
		id, print, known := strings.Cut(name, "|")
		if known {
			id += " (fingerprint " + print + ")"
		}
		names = append(names, id)
	}
	return strings.Join(names, ", ")
}

// checkWork looks whether a dispatcher does its work.
func checkWork(ctx context.Context, b *stored, found *findings) {
	c, err := b.history.Counts(ctx)
	if err != nil {
		found.failed("work", err)
		return
	}
	var again replay.Preview
	if c.DeadLettered > 0 {
		if again, err = b.replays.Preview(ctx, replay.Filter{Status: sender.StatusDeadLettered}); err != nil {
			found.failed("dead letters", err)
		}
	}
	judgeWork(&c, again.Count, found)
}

// judgeWork is given how many of the dead letters a replay would send, counted up to a bound.
func judgeWork(c *history.Counts, again int64, found *findings) {
	waits := time.Duration(0)
	if !c.OldestDue.IsZero() {
		waits = max(0, c.At.Sub(c.OldestDue)).Round(time.Second)
	}
	switch {
	case c.Unexpanded > 0:
		found.add("work", warn, fmt.Sprintf("events committed and not expanded: %d", c.Unexpanded), "if that stays so for a minute, no dispatcher runs: start one (Sender.Run)")
	case waits > 5*time.Minute:
		found.add("work", warn, fmt.Sprintf("a delivery has been due for %v: no dispatcher runs, or its endpoint hangs", waits), "surehook deliveries -status pending, or -status awaiting_retry, and surehook why ID")
	default:
		found.add("work", ok, fmt.Sprintf("%s live, %d held, %d dead-lettered", counted(c.Live, "delivery", "deliveries"), c.Held, c.DeadLettered), "")
	}
	if disabled, paused := c.Subscriptions[sender.SubscriptionDisabled], c.Subscriptions[sender.SubscriptionPaused]; disabled+paused > 0 {
		found.add("held", warn, fmt.Sprintf("%s disabled, and %d paused: %s for a resume", counted(disabled, "subscription is", "subscriptions are"), paused, counted(c.Held, "delivery waits", "deliveries wait")),
			"surehook subscriptions says why; once an endpoint answers, surehook resume ID sends what is held")
	}
	judgeDead(c.DeadLettered, again, found)
	if c.Notices > 0 {
		number := counted(c.Notices, "is not acknowledged", "are not acknowledged")
		if c.Notices >= history.MaxCountedNotices {
			number = fmt.Sprintf("%d or more are not acknowledged", c.Notices)
		}
		found.add("notices", warn, number, "surehook notices lists them, and so does the console; surehook acknowledge takes them off the list")
	}
}

func judgeDead(dead, again int64, found *findings) {
	given := counted(dead, "delivery was given up", "deliveries were given up")
	switch {
	case dead == 0:
	case again == 0:
		found.add("dead letters", ok, given+", and none can be sent again: the subscriptions are gone, or the bodies, or the events are too old", "")
	case again < min(dead, replay.MaxCounted):
		found.add("dead letters", warn, fmt.Sprintf("%s; %d can be sent again, and of the others the subscription is gone, or the body, or the event is too old", given, again), deadDo)
	default:
		found.add("dead letters", warn, given, deadDo)
	}
}

const deadDo = "surehook deliveries -status dead_lettered, then surehook replay"
