// Package bench compares mcpkit/mcp with others. It is a module of its own, so
// that what it compares with is nobody's dependency.
package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	google "github.com/google/jsonschema-go/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"mcpkit/mcp"
)

// A checker says why JSON does not fit a schema; nil if it does.
type checker func(doc []byte) error

// The validators. The others start from decoded values: check decodes for
// them, as a server must, and decoded leaves that out.
type validator struct {
	name    string
	compile func(schema []byte) (check checker, decoded func(v any) error, err error)
}

var validators = []validator{
	{"mcpkit", func(schema []byte) (checker, func(any) error, error) {
		s, err := mcp.CompileSchema(schema, nil)
		if err != nil {
			return nil, nil, err
		}
		return s.Validate, nil, nil
	}},
	{"santhosh-tekuri", func(schema []byte) (checker, func(any) error, error) {
		v, err := santhosh.UnmarshalJSON(bytes.NewReader(schema))
		if err != nil {
			return nil, nil, err
		}
		c := santhosh.NewCompiler()
		c.DefaultDraft(santhosh.Draft2020)
		if err := c.AddResource("mem:schema", v); err != nil {
			return nil, nil, err
		}
		s, err := c.Compile("mem:schema")
		if err != nil {
			return nil, nil, err
		}
		return func(doc []byte) error {
			v, err := santhosh.UnmarshalJSON(bytes.NewReader(doc))
			if err != nil {
				return err
			}
			return s.Validate(v)
		}, s.Validate, nil
	}},
	{"google", func(schema []byte) (checker, func(any) error, error) {
		var s google.Schema
		if err := json.Unmarshal(schema, &s); err != nil {
			return nil, nil, err
		}
		r, err := s.Resolve(nil)
		if err != nil {
			return nil, nil, err
		}
		return func(doc []byte) error {
			var v any
			if err := json.Unmarshal(doc, &v); err != nil {
				return err
			}
			return r.Validate(v)
		}, r.Validate, nil
	}},
}

// A sample is the schema of a tool as real servers have it, without its texts,
// and arguments that fit it.
type sample struct {
	Name         string
	Schema, Good json.RawMessage
}

func samples(t testing.TB) (all []sample) {
	text, err := os.ReadFile("testdata/schemas.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// odd values take the place of others in arguments.
var odd = []any{nil, true, 0, -1, 1.5, 11, 1e300, json.Number("1.0"), json.Number("9007199254740993"), "", "a", "size", strings.Repeat("é", 41), []any{}, []any{"x", 1}, map[string]any{}, map[string]any{"v": 1}}

// changed returns a value with one part of it replaced, left out or added.
func changed(v any, r *rand.Rand) any {
	if r.Intn(3) == 0 {
		return odd[r.Intn(len(odd))]
	}
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any)
		names := []string{}
		for name, value := range v {
			object[name] = value
			names = append(names, name)
		}
		slices.Sort(names)
		switch n := r.Intn(4); {
		case n == 0 || len(names) == 0:
			object[[]string{"more", "x-y", "7", "x"}[r.Intn(4)]] = odd[r.Intn(len(odd))]
		case n == 1:
			delete(object, names[r.Intn(len(names))])
		default:
			name := names[r.Intn(len(names))]
			object[name] = changed(v[name], r)
		}
		return object
	case []any:
		list := slices.Clone(v)
		if len(list) == 0 || r.Intn(3) == 0 {
			return append(list, odd[r.Intn(len(odd))])
		}
		i := r.Intn(len(list))
		list[i] = changed(list[i], r)
		return list
	}
	return odd[r.Intn(len(odd))]
}

func TestValidatorsAgree(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for _, s := range samples(t) {
		var checks []checker
		for _, v := range validators {
			check, _, err := v.compile(s.Schema)
			if err != nil {
				t.Fatalf("%s: %s: %v", s.Name, v.name, err)
			}
			if err := check(s.Good); err != nil {
				t.Errorf("%s: %s refuses %s: %v", s.Name, v.name, s.Good, err)
			}
			checks = append(checks, check)
		}
		fit := 0
		for range 500 {
			var v any
			json.Unmarshal(s.Good, &v)
			for range 1 + r.Intn(2) {
				v = changed(v, r)
			}
			doc, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			ours := checks[0](doc)
			if ours == nil {
				fit++
			}
			for i, check := range checks[1:] {
				name := validators[i+1].name
				if theirs := check(doc); (theirs == nil) != (ours == nil) {
					t.Errorf("%s: %s\n mcpkit: %v\n %s: %v", s.Name, doc, ours, name, theirs)
				}
			}
		}
		if fit == 0 || fit == 500 {
			t.Errorf("%s: %d of 500 fit", s.Name, fit)
		}
	}
}

// order is the arguments of a typical tool: 8 fields, nested, an enum, an array.
const (
	orderSchema = `{"type":"object","properties":{"id":{"type":"string","minLength":1},"customer":{"type":"string"},"priority":{"type":"string","enum":["low","normal","high"]},"quantity":{"type":"integer","minimum":1},"price":{"type":"number"},"express":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}},"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"},"zip":{"type":"string"},"country":{"type":"string"}},"required":["street","city","zip"],"additionalProperties":false}},"required":["id","customer","priority","quantity","price","address"],"additionalProperties":false}`
	order       = `{"id":"ord-000123","customer":"Ada Lovelace","priority":"high","quantity":3,"price":19.95,"express":true,"tags":["gift","fragile","eu"],"address":{"street":"12 Analytical Row","city":"London","zip":"N1 7AA","country":"GB"}}`
)

// list is a document of about size bytes that fits listSchema.
const listSchema = `{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","n"]}}`

func list(size int) []byte {
	var b bytes.Buffer
	b.WriteString("[")
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"name":"item number %d","n":%d,"tags":["red","green \u00e9"]}`, i, i*37)
	}
	b.WriteString("]")
	return b.Bytes()
}

func benchmarkChecks(b *testing.B, schema string, doc []byte, decoded bool) {
	for _, v := range validators {
		check, fromDecoded, err := v.compile([]byte(schema))
		if err != nil {
			b.Fatal(err)
		}
		b.Run("impl="+v.name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if err := check(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
		if decoded && fromDecoded != nil {
			value, _ := santhosh.UnmarshalJSON(bytes.NewReader(doc))
			if v.name == "google" {
				json.Unmarshal(doc, &value)
			}
			b.Run("impl="+v.name+"-decoded", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := fromDecoded(value); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkValidate(b *testing.B) { benchmarkChecks(b, orderSchema, []byte(order), true) }

func BenchmarkCompile(b *testing.B) {
	for _, v := range validators {
		b.Run("impl="+v.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := v.compile([]byte(orderSchema)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLarge doubles the document: what a byte costs must stay the same.
func BenchmarkLarge(b *testing.B) {
	for size := 1 << 10; size <= 4<<20; size *= 4 {
		doc := list(size)
		b.Run(fmt.Sprintf("size=%dKiB/impl=json.Valid", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if !json.Valid(doc) {
					b.Fatal("not valid")
				}
			}
		})
		b.Run(fmt.Sprintf("size=%dKiB", size>>10), func(b *testing.B) { benchmarkChecks(b, listSchema, doc, false) })
	}
}
