package mcp

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

type (
	plainText   string
	upperText   struct{ s string }
	ownJSON     struct{ n int }
	knowsItems  struct{ n int }
	intKeys     map[int8]bool
	textKey     struct{ a, b byte }
	page[T any] struct {
		Items []T      `json:"items"`
		Next  *page[T] `json:"next,omitempty"`
	}
	inner struct {
		X int `json:"x"`
	}
	Base struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	Other struct {
		Name  string `json:"Name"`
		Extra bool
	}
	node struct {
		Kids []node
		Next *node
	}
	left  struct{ R map[string]right }
	right struct{ L *left }
	tree  map[string]tree
)

func (u upperText) MarshalText() ([]byte, error)  { return []byte(strings.ToUpper(u.s)), nil }
func (k textKey) MarshalText() ([]byte, error)    { return []byte{k.a, k.b}, nil }
func (o ownJSON) MarshalJSON() ([]byte, error)    { return json.Marshal([]int{o.n}) }
func (k knowsItems) MarshalJSON() ([]byte, error) { return json.Marshal([]int{k.n}) }
func (k knowsItems) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type": "array", "items": {}}`)
}

func TestInferredSchemas(t *testing.T) {
	shows(t, "schema.dialect.prefer")
	const closed = `,"additionalProperties":false}`
	tests := []struct {
		v    any
		want string
	}{
		{struct{}{}, `{"type":"object","properties":{}` + closed},
		{&struct{}{}, `{"type":"object","properties":{}` + closed},
		{true, `{"type":"boolean"}`},
		{int(1), `{"type":"integer"}`},
		{int8(1), `{"type":"integer","minimum":-128,"maximum":127}`},
		{int32(1), `{"type":"integer","minimum":-2147483648,"maximum":2147483647}`},
		{uint16(1), `{"type":"integer","minimum":0,"maximum":65535}`},
		{uint64(1), `{"type":"integer","minimum":0}`},
		{1.5, `{"type":"number"}`},
		{plainText(""), `{"type":"string"}`},
		{[]string{}, `{"type":"array","items":{"type":"string"}}`},
		{[4]byte{}, `{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":4,"maxItems":4}`},
		{[]byte{}, `{"type":"string","contentEncoding":"base64"}`},
		{map[string]any{}, `{"type":"object","additionalProperties":{},"properties":{}}`},
		{map[textKey]int{}, `{"type":"object","additionalProperties":{"type":"integer"},"properties":{}}`},
		{intKeys{}, `{"type":"object","propertyNames":{"pattern":"^-?(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"boolean"},"properties":{}}`},
		{json.RawMessage{}, `{}`},
		{json.Number(""), `{"type":"number"}`},
		{time.Time{}, `{"type":"string","format":"date-time"}`},
		{time.Second, `{"type":"integer","description":"nanoseconds"}`},
		{struct{ time.Time }{}, `{}`},
		{upperText{}, `{"type":"string"}`},
		{ownJSON{}, `{}`},
		{knowsItems{}, `{"type":"array","items":{}}`},
		{big.Int{}, `{"type":"integer"}`},
		{&big.Float{}, `{"type":"string"}`},
		{netip.Addr{}, `{"type":"string"}`},
		{url.URL{}, `{"type":"object","description":"a URL split in its parts, as Go's net/url has them","properties":{}}`},
		{struct {
			A int `json:"a"`
			B int `json:"b,omitempty"`
			C int `json:"c,omitzero"`
			D *int
			E int    `json:"-"`
			F int    `json:"-,"`
			G int    `json:"bad\"name"`
			H int    `json:",string"`
			I *bool  `json:"i,string"`
			J []byte `json:",string"`
			k int
		}{}, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"D":{"type":"integer"},` +
			`"-":{"type":"integer"},"G":{"type":"integer"},"H":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},"i":{"type":"string","enum":["true","false"]},` +
			`"J":{"type":"string","contentEncoding":"base64"}},"required":["a","-","G","H","J"]` + closed},
		{struct {
			Base
			*inner
			Extra int
			Other
		}{}, `{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"x":{"type":"integer"},"Extra":{"type":"integer"},` +
			`"Name":{"type":"string"}},"required":["id","name","Extra","Name"]` + closed},
		{struct {
			inner `json:"named"`
			Base  `json:"base"`
		}{}, `{"type":"object","properties":{"named":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"base":{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"required":["id","name"],` +
			`"additionalProperties":false}},"required":["named","base"]` + closed},
		{struct {
			A, B inner
			C    []*inner
		}{}, `{"type":"object","properties":{"A":{"$ref":"#/$defs/inner"},"B":{"$ref":"#/$defs/inner"},"C":{"type":"array","items":{"$ref":"#/$defs/inner"}}},` +
			`"required":["A","B","C"],"additionalProperties":false,"$defs":{"inner":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]` + closed + `}}`},
		{node{}, `{"type":"object","properties":{"Kids":{"type":"array","items":{"$ref":"#"}},"Next":{"$ref":"#"}},"required":["Kids"]` + closed},
		{left{}, `{"type":"object","properties":{"R":{"type":"object","additionalProperties":{"type":"object","properties":{"L":{"$ref":"#"}}` + closed + `}},"required":["R"]` + closed},
		{tree{}, `{"type":"object","additionalProperties":{"$ref":"#"},"properties":{}}`},
		{[]page[Base]{}, `{"type":"array","items":{"$ref":"#/$defs/page_mcp.Base"},"$defs":{"page_mcp.Base":{"type":"object","properties":{` +
			`"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"required":["id","name"],"additionalProperties":false}},` +
			`"next":{"$ref":"#/$defs/page_mcp.Base"}},"required":["items"]` + closed + `}}`},
	}
	for _, test := range tests {
		typ := reflect.TypeOf(test.v)
		got, err := schemaForType(typ)
		if err != nil || string(got) != test.want {
			t.Errorf("schema of %v:\n got %s, %v\nwant %s", typ, got, err, test.want)
		}
	}
}

func TestTagKeywords(t *testing.T) {
	type fields struct {
		A string         `json:"a" jsonschema:"a name, at most 10 bytes,maxLength=10,pattern=^[a-z]{1,3}$,format=email,default=x"`
		B int            `json:"b" jsonschema:"minimum=1,maximum=9.5,multipleOf=2,enum=2|4,default=4,x-mcp-header=Region"`
		C []string       `json:"c" jsonschema:"some tags, comma separated,minItems=1,uniqueItems=true,enum=a|b,default=[\"a\"]"`
		D *inner         `json:"d" jsonschema:"nested,required=true,deprecated=true"`
		E any            `json:"e" jsonschema:"type=string,minLength=2,const=abc"`
		F any            `json:"f,omitempty" jsonschema:"examples=1|x|{},title=Eff"`
		G map[string]int `json:"g" jsonschema:"required=p|q,minProperties=1,dependentRequired={\"p\":[\"q\"]}"`
		H []int          `json:"h" jsonschema:"contains={\"minimum\":3},minContains=2,minimum=1"`
		I time.Duration  `json:"i" jsonschema:"time to wait"`
	}
	got, err := SchemaFor[fields]()
	want := `{"type":"object","properties":{` +
		`"a":{"type":"string","description":"a name, at most 10 bytes","maxLength":10,"pattern":"^[a-z]{1,3}$","format":"email","default":"x"},` +
		`"b":{"type":"integer","minimum":1,"maximum":9.5,"multipleOf":2,"enum":[2,4],"default":4,"x-mcp-header":"Region"},` +
		`"c":{"type":"array","items":{"type":"string","enum":["a","b"]},"description":"some tags, comma separated","minItems":1,"uniqueItems":true,"default":["a"]},` +
		`"d":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false,"description":"nested","deprecated":true},` +
		`"e":{"type":"string","minLength":2,"const":"abc"},` +
		`"f":{"examples":[1,"x",{}],"title":"Eff"},` +
		`"g":{"type":"object","additionalProperties":{"type":"integer"},"required":["p","q"],"minProperties":1,"dependentRequired":{"p":["q"]}},` +
		`"h":{"type":"array","items":{"type":"integer","minimum":1},"contains":{"minimum":3},"minContains":2},` +
		`"i":{"type":"integer","description":"time to wait (nanoseconds)"}` +
		`},"required":["d","e","g","h","i"],"additionalProperties":false}`
	if err != nil || string(got) != want {
		t.Errorf(" got %s, %v\nwant %s", got, err, want)
	}
}

func TestWhatCannotBeInferredNamesTheField(t *testing.T) {
	type loop *loop
	tests := []struct {
		v    any
		want string
	}{
		{struct{ A struct{ B chan int } }{}, "field A.B: chan int has no JSON form"},
		{struct{ F func() }{}, "field F: func() has no JSON form"},
		{complex(1, 1), "complex128 has no JSON form"},
		{loop(nil), "has no JSON form"},
		{map[float64]int{}, "keys are not text"},
		{struct {
			A []struct {
				B int `jsonschema:"minimun=1"`
			}
		}{}, `field A.B: the jsonschema tag has the unknown keyword "minimun"`},
		{struct {
			A string `jsonschema:"x,minimum=1"`
		}{}, "field A: the jsonschema tag's minimum=1 does not fit string"},
		{struct {
			A int `jsonschema:"minimum=low"`
		}{}, "field A: the jsonschema tag's minimum=low does not fit integer"},
		{struct {
			A int `jsonschema:"default=1.5"`
		}{}, "default=1.5 does not fit integer"},
		{struct {
			A bool `jsonschema:"enum=true|yes"`
		}{}, "enum=true|yes does not fit boolean"},
		{struct {
			A string `jsonschema:"pattern=("`
		}{}, "pattern=( does not fit"},
		{struct {
			A string `jsonschema:"maxLength=-1"`
		}{}, "maxLength=-1 does not fit"},
		{struct {
			A string `jsonschema:"type=integer"`
		}{}, "type=integer does not fit string"},
		{struct {
			A float64 `jsonschema:"x-mcp-header=A"`
		}{}, "x-mcp-header=A does not fit number"},
		{struct {
			A int `jsonschema:"multipleOf=0"`
		}{}, "multipleOf=0 does not fit"},
	}
	for _, test := range tests {
		_, err := schemaForType(reflect.TypeOf(test.v))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: got %v, want %s", test.v, err, test.want)
		}
	}
}

func TestRepeatedTypesStaySmall(t *testing.T) {
	type t0 struct{ A, B int }
	type t1 struct{ A, B t0 }
	type t2 struct{ A, B t1 }
	type t3 []struct{ A, B t2 }
	type t4 []struct{ A, B t3 }
	type t5 struct{ A, B t4 }
	schema, err := SchemaFor[t5]()
	if err != nil || len(schema) > 1500 {
		t.Errorf("%d bytes, %v: %s", len(schema), err, schema)
	}
}
