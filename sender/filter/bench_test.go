package filter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// tenTerms is a filter of ten operators, all of which hold of benchBody.
const tenTerms = `{"data.status":"paid","data.amount":{"gte":100,"lt":1000},"data.currency":{"in":["EUR","USD","CHF"]},"data.customer.country":"DE",
	"data.customer.name":{"prefix":"Jo"},"data.items.sku":"sku_3","data.refund":{"exists":false},"or":[{"data.test":true},{"data.region":"eu"}]}`

// benchBody is about as large as asked.
func benchBody(bytes int) []byte {
	var items strings.Builder
	for i := 0; items.Len() < bytes-300 || i < 5; i++ {
		fmt.Fprintf(&items, `,{"sku":"sku_%d","quantity":%d,"price":"12.50","description":"a thing of some kind"}`, i, i)
	}
	return []byte(`{"id":"evt_0000000000","type":"invoice.paid","occurred_at":"2026-07-01T10:00:00Z","object":{"type":"invoice","id":"in_7"},"version":3,"data":{"status":"paid","amount":120.50,"currency":"EUR",` +
		`"customer":{"id":"cus_1","country":"DE","name":"Jo Public"},"region":"eu","items":[` + items.String()[1:] + `]}}`)
}

func BenchmarkMatch(b *testing.B) {
	f := parsed(b, tenTerms)
	for _, size := range []int{700, 16 << 10} {
		body := benchBody(size)
		if !f.Match(body) {
			b.Fatal("it does not match")
		}
		b.Run(fmt.Sprintf("walk-%d", len(body)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				f.Match(body)
			}
		})
		b.Run(fmt.Sprintf("map-%d", len(body)), func(b *testing.B) { // what it would take to decode alone
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				var m map[string]any
				_ = json.Unmarshal(body, &m)
			}
		})
	}
}
