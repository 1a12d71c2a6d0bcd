package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"
)

// Parent is a process's parent, as the child sees it. It is not safe for
// concurrent use.
type Parent struct {
	questions chan []byte
	out       *json.Encoder
}

// Open decodes the parent's parameters. ctx ends when the parent asks for the end, or
// is gone. If the process does not end then, it is ended by force.
func Open(params any) (ctx context.Context, p *Parent, err error) {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(line, params); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p = &Parent{questions: make(chan []byte), out: json.NewEncoder(os.Stdout)}
	go func() {
		defer func() {
			cancel()
			close(p.questions)
			time.AfterFunc(stopTime, func() { os.Exit(1) })
		}()
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			p.questions <- line
		}
	}()
	return ctx, p, nil
}

// Answer tells the parent that the process is ready, or answers its question.
func (p *Parent) Answer(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.out.Encode(reply{Answer: b})
}

// Fail tells the parent the error.
func (p *Parent) Fail(err error) error {
	return errors.Join(err, p.out.Encode(reply{Error: err.Error()}))
}

// Question waits for the parent's next question. It returns io.EOF after the last one.
func (p *Parent) Question(v any) error {
	line, ok := <-p.questions
	if !ok {
		return io.EOF
	}
	return json.Unmarshal(line, v)
}

// Answers calls answer for each question, until the last one.
func Answers[Q any](p *Parent, answer func(q Q) (any, error)) error {
	for {
		var q Q
		switch err := p.Question(&q); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		a, err := answer(q)
		if err != nil {
			return p.Fail(err)
		}
		if err := p.Answer(a); err != nil {
			return err
		}
	}
}
