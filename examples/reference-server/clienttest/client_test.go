package clienttest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/examples/reference-server/clienttest"
)

const operatorToken = "the-operators-own-token"

// start builds the program, runs it until the test ends, and returns where it listens.
func start(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "reference-server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir = ".."
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	cmd := exec.Command(binary, "-addr", "127.0.0.1:0", "-database", filepath.Join(dir, "test.db"), "-operator-token", operatorToken, "-allow-private-networks")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		require.NoError(t, cmd.Wait())
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	base, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	require.True(t, ok, line)
	return base
}

func client(t *testing.T, base, token string) *clienttest.ClientWithResponses {
	t.Helper()
	c, err := clienttest.NewClientWithResponses(base, clienttest.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	require.NoError(t, err)
	return c
}

// The client has a method for each operation of the document that is served now.
func TestClientIsOfThisDocument(t *testing.T) {
	res, err := http.Get(start(t) + "/openapi.json")
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&doc))
	methods, n := reflect.TypeFor[*clienttest.ClientWithResponses](), 0
	for path, operations := range doc.Paths {
		for method, o := range operations {
			var name strings.Builder
			for word := range strings.SplitSeq(o.OperationID, "-") {
				name.WriteString(strings.ToUpper(word[:1]) + word[1:])
			}
			_, ok := methods.MethodByName(name.String() + "WithResponse")
			require.True(t, ok, "%s %s: make the client anew, as doc.go says", method, path)
			n++
		}
	}
	require.Equal(t, 38, n)
}

// A subscription is made, an event published and delivered, read by push, by pull and
// as an export; a refusal is a typed problem.
func TestGeneratedClient(t *testing.T) {
	base, ctx := start(t), t.Context()
	operator := client(t, base, operatorToken)

	sub, err := operator.CreateSubscriberWithResponse(ctx, nil, clienttest.NewSubscriber{Name: "Ada"})
	require.NoError(t, err)
	require.NotNil(t, sub.JSON201, "%s", sub.Body)
	require.Equal(t, `"1"`, sub.HTTPResponse.Header.Get("ETag"))
	own := client(t, base, sub.JSON201.Token)

	posted := make(chan http.Header, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { posted <- r.Header }))
	defer endpoint.Close()
	subscription, err := own.CreateSubscriptionWithResponse(ctx, nil, clienttest.NewSubscription{Url: endpoint.URL, EventTypes: &[]string{"order.*"}})
	require.NoError(t, err)
	require.NotNil(t, subscription.JSON201, "%s", subscription.Body)
	require.Nil(t, subscription.JSON201.DisabledAt)

	key := "a-key"
	event := clienttest.NewEvent{Type: "order.paid", Object: clienttest.Object{Type: "order", Id: "1"}, SubscriberId: &sub.JSON201.Id}
	first, err := operator.PublishEventWithResponse(ctx, &clienttest.PublishEventParams{IdempotencyKey: &key}, event)
	require.NoError(t, err)
	require.NotNil(t, first.JSON201, "%s", first.Body)
	repeat, err := operator.PublishEventWithResponse(ctx, &clienttest.PublishEventParams{IdempotencyKey: &key}, event)
	require.NoError(t, err)
	require.Equal(t, first.JSON201, repeat.JSON201)
	require.Equal(t, first.JSON201.Id, (<-posted).Get("Webhook-Id"))

	page := eventually(t, func() *clienttest.EventPage {
		r, err := own.ListEventsWithResponse(ctx, nil)
		require.NoError(t, err)
		require.NotNil(t, r.JSON200, "%s", r.Body)
		return r.JSON200
	}, func(p *clienttest.EventPage) bool { return len(p.Data) == 2 })
	require.Equal(t, first.JSON201.Id, page.Data[1].Id)

	delivery := eventually(t, func() *clienttest.DeliveryRecord {
		list, err := own.ListDeliveriesWithResponse(ctx, &clienttest.ListDeliveriesParams{EventId: &first.JSON201.Id})
		require.NoError(t, err)
		require.NotNil(t, list.JSON200, "%s", list.Body)
		require.Len(t, list.JSON200.Data, 1)
		one, err := own.GetDeliveryWithResponse(ctx, list.JSON200.Data[0].Id)
		require.NoError(t, err)
		require.NotNil(t, one.JSON200, "%s", one.Body)
		return one.JSON200
	}, func(d *clienttest.DeliveryRecord) bool { return d.Status == "delivered" })
	require.Len(t, delivery.Attempts, 1)
	require.EqualValues(t, http.StatusOK, *delivery.Attempts[0].StatusCode)

	var input clienttest.NewJob_Input
	types := "order.*"
	require.NoError(t, input.FromExportEvents(clienttest.ExportEvents{EventType: &types}))
	job, err := own.SubmitJobWithResponse(ctx, nil, clienttest.NewJob{Kind: "export_events", Input: input})
	require.NoError(t, err)
	require.NotNil(t, job.JSON202, "%s", job.Body)
	require.Nil(t, job.JSON202.Progress, "it has not begun")
	done := eventually(t, func() *clienttest.Job {
		r, err := own.GetJobWithResponse(ctx, job.JSON202.Id)
		require.NoError(t, err)
		require.NotNil(t, r.JSON200, "%s", r.Body)
		return r.JSON200
	}, func(j *clienttest.Job) bool { return j.Status == "succeeded" })
	listed, err := done.Result.AsJobResult3()
	require.NoError(t, err)
	require.Len(t, listed, 1, "the result has a type")
	export, err := own.GetExportWithResponse(ctx, job.JSON202.Id)
	require.NoError(t, err)
	require.NotNil(t, export.JSON200, "%s", export.Body)
	require.Len(t, *export.JSON200, 1)

	refused, err := own.CreateSubscriptionWithResponse(ctx, nil, clienttest.NewSubscription{Url: "ftp://example.com/"})
	require.NoError(t, err)
	require.NotNil(t, refused.ApplicationproblemJSON422, "%s", refused.Body)
	require.Equal(t, "body.url", (*refused.ApplicationproblemJSON422.Errors)[0].Location)

	none, err := own.ChangeSubscriptionWithResponse(ctx, subscription.JSON201.Id, nil, clienttest.SubscriptionChange{EventTypes: &[]string{}})
	require.NoError(t, err)
	require.NotNil(t, none.ApplicationproblemJSON422, "%s", none.Body)
	require.Equal(t, "body.event_types", (*none.ApplicationproblemJSON422.Errors)[0].Location)
}

// eventually asks again and again until what comes back is right.
func eventually[T any](t *testing.T, ask func() T, right func(T) bool) T {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		got := ask()
		if right(got) {
			return got
		}
		require.True(t, time.Now().Before(deadline), "never came about; the last answer: %+v", got)
		time.Sleep(10 * time.Millisecond) // between two questions; nothing depends on how long
	}
}
