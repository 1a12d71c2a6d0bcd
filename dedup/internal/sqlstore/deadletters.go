package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/surehook/surehook/dedup"
)

const letterColumns = `scope, id, type, object_type, object_id, version, body, reason, at`

// SetAside is of [dedup.DeadLetters].
func SetAside(ctx context.Context, tx *sql.Tx, letter dedup.DeadLetter) error {
	l, err := letter.Prepare()
	if err != nil {
		return err
	}
	_, err = Exec(ctx, tx, `REPLACE INTO surehook_dedup_dead_letters (`+letterColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		l.Scope, l.ID, l.Type, l.Object.Type, l.Object.ID, l.Version, l.Body, l.Reason, l.At.UnixMicro())
	return dedup.WrapError(ctx, "setting an event aside", err)
}

// DeadLetter is of [dedup.DeadLetters].
func DeadLetter(ctx context.Context, tx *sql.Tx, scope, id string) (dedup.DeadLetter, error) {
	if err := dedup.CheckID(scope, id); err != nil {
		return dedup.DeadLetter{}, err
	}
	if tx == nil {
		return dedup.DeadLetter{}, ErrNoTx
	}
	l, err := scanLetter(tx.QueryRowContext(ctx,
		`SELECT `+letterColumns+` FROM surehook_dedup_dead_letters WHERE scope = ? AND id = ?`, scope, id))
	if errors.Is(err, sql.ErrNoRows) {
		return dedup.DeadLetter{}, dedup.ErrNotFound
	}
	return l, dedup.WrapError(ctx, "reading a dead letter", err)
}

// ListDeadLetters is of [dedup.DeadLetters].
func ListDeadLetters(ctx context.Context, tx *sql.Tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
	if err := dedup.CheckList(scope, after, limit); err != nil {
		return nil, err
	}
	if tx == nil {
		return nil, ErrNoTx
	}
	letters, err := listLetters(ctx, tx, scope, after, limit)
	return letters, dedup.WrapError(ctx, "listing dead letters", err)
}

func listLetters(ctx context.Context, tx *sql.Tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
	rows, err := tx.QueryContext(ctx,
		`SELECT `+letterColumns+` FROM surehook_dedup_dead_letters WHERE scope = ? AND id > ? ORDER BY id LIMIT ?`,
		scope, after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var letters []dedup.DeadLetter
	for rows.Next() {
		l, err := scanLetter(rows)
		if err != nil {
			return nil, err
		}
		letters = append(letters, l)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return letters, nil
}

// Discard is of [dedup.DeadLetters].
func Discard(ctx context.Context, tx *sql.Tx, scope, id string) error {
	if err := dedup.CheckID(scope, id); err != nil {
		return err
	}
	n, err := Exec(ctx, tx, `DELETE FROM surehook_dedup_dead_letters WHERE scope = ? AND id = ?`, scope, id)
	if err == nil && n == 0 {
		return dedup.ErrNotFound
	}
	return dedup.WrapError(ctx, "discarding a dead letter", err)
}

func scanLetter(row interface{ Scan(...any) error }) (dedup.DeadLetter, error) {
	var l dedup.DeadLetter
	var at int64
	err := row.Scan(&l.Scope, &l.ID, &l.Type, &l.Object.Type, &l.Object.ID, &l.Version, &l.Body, &l.Reason, &at)
	if err != nil {
		return dedup.DeadLetter{}, err
	}
	l.At = time.UnixMicro(at).UTC()
	return l, nil
}
