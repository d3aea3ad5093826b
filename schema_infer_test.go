package mcp

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

type (
	grade      int                // writes itself as text
	gradeAt    int                // its pointer does
	wordAt     string             // its pointer does
	readsText  struct{ S string } // reads text, and writes its fields
	jsonAt     struct{ S string } // its pointer writes JSON
	saysTrue   struct{ n int }
	saysAt     struct{ n int }
	coin       byte // writes itself
	blob       []byte
	idList     []int
	matrix     []idList
	nestedList []nestedList
	ring       struct {
		Next *ring `json:"next,omitempty"`
		Rest []ring
	}
	evenType                     struct{ Odd *oddType }
	oddType                      struct{ Even map[string]evenType }
	entryOf[K comparable, V any] struct {
		Key   K
		Value V
	}
	intPointer *int

	Deepest  struct{ Z int }
	Deep     struct{ Deepest }
	OneWay   struct{ Deep }
	OtherWay struct{ Deep }
	Tagged   struct {
		Z string `json:"z"`
	}
	Shadow   struct{ X, Y int }
	shadowed struct{ X string }
	Word     string
	lowWord  string
	Asks     interface{ Ask() }
	Own      struct{ N int }
	Owner    struct {
		Own
		M int
	}
	Borrower struct {
		Own
		M int
	}
)

func (g grade) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "g%d", g), nil }
func (g *grade) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "g%d", g)
	return err
}
func (g *gradeAt) MarshalText() ([]byte, error)   { return []byte{'A' + byte(*g)}, nil }
func (w *wordAt) MarshalText() ([]byte, error)    { return []byte("w" + *w), nil }
func (r *readsText) UnmarshalText(b []byte) error { r.S = string(b); return nil }
func (j *jsonAt) MarshalJSON() ([]byte, error)    { return []byte(`[]`), nil }
func (c coin) MarshalText() ([]byte, error)       { return []byte("head"), nil }
func (saysTrue) JSONSchema() json.RawMessage      { return json.RawMessage(" true ") }
func (*saysAt) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"title":"at","type":"object","properties":{}}`)
}
func (Own) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"object","title":"own"}`) }
func (Owner) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","title":"owner"}`)
}

// inferenceTable has a Go type and the schema that is sent for it, for every
// kind that encoding/json handles. … is the end of a struct.
var inferenceTable = map[string][]struct {
	v    any
	want string
}{
	"numbers": {
		{int16(0), `{"type":"integer","minimum":-32768,"maximum":32767}`},
		{int64(0), `{"type":"integer"}`},
		{uint(0), `{"type":"integer","minimum":0}`},
		{uint8(0), `{"type":"integer","minimum":0,"maximum":255}`},
		{uint32(0), `{"type":"integer","minimum":0,"maximum":4294967295}`},
		{uintptr(0), `{"type":"integer","minimum":0}`},
		{float32(0), `{"type":"number"}`},
		{time.March, `{"type":"integer"}`},
		{new(json.Number), `{"type":"number"}`},
		{[]json.Number{"1"}, `{"type":"array","items":{"type":"number"}}`},
		{&big.Int{}, `{"type":"integer"}`},
		{[]big.Int{{}}, `{"type":"array","items":{"type":"integer"}}`},
	},
	"text": {
		{Word(""), `{"type":"string"}`},
		{blob{}, `{"type":"string","contentEncoding":"base64"}`},
		{new([]byte), `{"type":"string","contentEncoding":"base64"}`},
		{[][]byte{}, `{"type":"array","items":{"type":"string","contentEncoding":"base64"}}`},
		{[]coin{0}, `{"type":"array","items":{"type":"string"}}`},
		{grade(0), `{"type":"string"}`},
		{new(gradeAt), `{"type":"string"}`},
		{gradeAt(0), `{}`}, // a number unless it has an address
		{wordAt(""), `{"type":"string"}`},
		{readsText{}, `{}`}, // writes an object and reads text
		{new(encoding.TextMarshaler), `{}`},
		{time.Time{}, `{"type":"string","format":"date-time"}`},
		{[]*time.Time{}, `{"type":"array","items":{"type":"string","format":"date-time"}}`},
		{&big.Rat{}, `{"type":"string"}`},
		{netip.Prefix{}, `{"type":"string"}`},
		{netip.AddrPort{}, `{"type":"string"}`},
		{net.IP{}, `{"type":"string"}`},
		{slog.LevelInfo, `{"type":"string"}`},
		{regexp.MustCompile("a"), `{"type":"string"}`},
	},
	"open": {
		{new(any), `{}`},
		{new(error), `{}`},
		{new(json.RawMessage), `{}`},
		{[]json.RawMessage{}, `{"type":"array","items":{}}`},
		{jsonAt{}, `{}`},
		{&ownJSON{}, `{}`},
		{saysTrue{}, `{}`},
		{saysAt{}, `{"title":"at","type":"object","properties":{}}`},
		{&knowsItems{}, `{"type":"array","items":{}}`},
		{Owner{}, `{"type":"object","title":"owner","properties":{}}`},
		{Borrower{}, `{"type":"object","properties":{"N":{"type":"integer"},"M":{"type":"integer"}},"required":["N","M"],…`},
		{struct{ U *url.URL }{}, `{"type":"object","properties":{"U":{"type":"object","description":"a URL split in its parts, as Go's net/url has them"}},…`},
	},
	"arrays": {
		{[][]string{}, `{"type":"array","items":{"type":"array","items":{"type":"string"}}}`},
		{[0]int{}, `{"type":"array","items":{"type":"integer"},"minItems":0,"maxItems":0}`},
		{[2][1]bool{}, `{"type":"array","items":{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":1},"minItems":2,"maxItems":2}`},
		{&[]**bool{}, `{"type":"array","items":{"type":"boolean"}}`},
	},
	"maps": {
		{map[Word]int{}, `{"type":"object","additionalProperties":{"type":"integer"},"properties":{}}`},
		{map[uint8]int{}, `{"type":"object","propertyNames":{"pattern":"^(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"integer"},"properties":{}}`},
		{map[grade]int{}, `{"type":"object","additionalProperties":{"type":"integer"},"properties":{}}`},
		{map[netip.Addr][]int{}, `{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}},"properties":{}}`},
		{map[time.Duration]struct{}{}, `{"type":"object","propertyNames":{"pattern":"^-?(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"object","properties":{},…,"properties":{}}`},
		{map[string]map[string]any{}, `{"type":"object","additionalProperties":{"type":"object","additionalProperties":{}},"properties":{}}`},
	},
	"fields": {
		{struct {
			A *string `json:"a"`
			B *string `json:"b" jsonschema:"required=true"`
			C []int   `json:"c,omitempty"`
			D inner   `json:"d,omitzero"`
			E any     `json:"e"`
			F string  `json:",omitempty"`
			G string  `json:"日本"`
			H string  `json:"a/b~c"`
			i string
		}{}, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"array","items":{"type":"integer"}},` +
			`"d":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],…,"e":{},"F":{"type":"string"},"日本":{"type":"string"},"a/b~c":{"type":"string"}},` +
			`"required":["b","e","日本","a/b~c"],…`},
		{struct {
			A int8          `json:"a,string"`
			B uint          `json:"b,string"`
			C float64       `json:"c,string"`
			D bool          `json:"d,string"`
			E string        `json:"e,string"`
			F *int          `json:"f,omitempty,string"`
			G time.Duration `json:"g,string"`
			H json.Number   `json:"h,string"`
			I []int         `json:"i,string"`
			J any           `json:"j,string"`
			K grade         `json:"k,string"`
			L slog.Level    `json:"l,string"`
			M intPointer    `json:"m,string"`
			N **int         `json:"n,string"`
			O time.Time     `json:"o,string"`
		}{}, `{"type":"object","properties":{"a":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},"b":{"type":"string","pattern":"^(0|[1-9][0-9]*)$"},` +
			`"c":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},"d":{"type":"string","enum":["true","false"]},` +
			`"e":{"type":"string","pattern":"^\"([^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|u[0-9a-fA-F]{4}))*\"$"},"f":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},` +
			`"g":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},"h":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},` +
			`"i":{"type":"array","items":{"type":"integer"}},"j":{},"k":{"type":"string"},"l":{"type":"string"},"m":{"type":"integer"},"n":{"type":"integer"},"o":{"type":"string","format":"date-time"}},` +
			`"required":["a","b","c","d","e","g","h","i","j","k","l","o"],…`},
	},
	"promotion": {
		{struct { // the nearer one wins
			Shadow
			shadowed
			X bool
		}{}, `{"type":"object","properties":{"Y":{"type":"integer"},"X":{"type":"boolean"}},"required":["Y","X"],…`},
		{struct { // two on one level hide each other
			Shadow
			shadowed
		}{}, `{"type":"object","properties":{"Y":{"type":"integer"}},"required":["Y"],…`},
		{struct { // but for one with a tag
			Deepest
			Tagged `json:",omitempty"`
			Other  struct{} `json:"-"`
			Z      int      `json:"z"`
		}{}, `{"type":"object","properties":{"Z":{"type":"integer"},"z":{"type":"integer"}},"required":["Z","z"],…`},
		{struct { // Deep comes twice and hides its own fields, which are none; Deepest counts once
			OneWay
			OtherWay
		}{}, `{"type":"object","properties":{"Z":{"type":"integer"}},"required":["Z"],…`},
		{struct {
			Deep
			OneWay
			*Tagged
		}{}, `{"type":"object","properties":{"Z":{"type":"integer"},"z":{"type":"string"}},"required":["Z"],…`},
		{struct { // what is not a struct is a field
			Word
			Asks
			lowWord
			*Shadow `json:"shadow"`
		}{}, `{"type":"object","properties":{"Word":{"type":"string"},"Asks":{},"shadow":{"type":"object","properties":{"X":{"type":"integer"},"Y":{"type":"integer"}},"required":["X","Y"],…},"required":["Word","Asks"],…`},
	},
	"references": {
		{nestedList{}, `{"type":"array","items":{"$ref":"#"}}`},
		{&ring{}, `{"type":"object","properties":{"next":{"$ref":"#"},"Rest":{"type":"array","items":{"$ref":"#"}}},"required":["Rest"],…`},
		{[]ring{}, `{"type":"array","items":{"$ref":"#/$defs/ring"},"$defs":{"ring":{"type":"object","properties":{"next":{"$ref":"#/$defs/ring"},"Rest":{"type":"array","items":{"$ref":"#/$defs/ring"}}},"required":["Rest"],…}}`},
		{evenType{}, `{"type":"object","properties":{"Odd":{"type":"object","properties":{"Even":{"type":"object","additionalProperties":{"$ref":"#"}}},"required":["Even"],…},…`},
		{struct {
			B oddType
			A []oddType
		}{}, `{"type":"object","properties":{"B":{"$ref":"#/$defs/oddType"},"A":{"type":"array","items":{"$ref":"#/$defs/oddType"}}},"required":["B","A"],"additionalProperties":false,` +
			`"$defs":{"oddType":{"type":"object","properties":{"Even":{"type":"object","additionalProperties":{"type":"object","properties":{"Odd":{"$ref":"#/$defs/oddType"}},…}},"required":["Even"],…}}`},
		{[]entryOf[string, map[string]entryOf[string, *time.Time]]{}, `{"type":"array","items":{"type":"object","properties":{"Key":{"type":"string"},"Value":{"type":"object","additionalProperties":` +
			`{"type":"object","properties":{"Key":{"type":"string"},"Value":{"type":"string","format":"date-time"}},"required":["Key"],…}},"required":["Key","Value"],…}`},
		{[2]entryOf[entryOf[bool, int], entryOf[bool, int]]{}, `{"type":"array","items":{"type":"object","properties":{"Key":{"$ref":"#/$defs/entryOf_bool_int"},"Value":{"$ref":"#/$defs/entryOf_bool_int"}},"required":["Key","Value"],…,` +
			`"minItems":2,"maxItems":2,"$defs":{"entryOf_bool_int":{"type":"object","properties":{"Key":{"type":"boolean"},"Value":{"type":"integer"}},"required":["Key","Value"],…}}`},
		{struct {
			A, B idList `jsonschema:"some,minimum=1,minItems=2"`
			C, D matrix `jsonschema:"enum=1|2"`
		}{}, `{"type":"object","properties":{"A":{"$ref":"#/$defs/idList","description":"some","items":{"minimum":1},"minItems":2},"B":{"$ref":"#/$defs/idList","description":"some","items":{"minimum":1},"minItems":2},` +
			`"C":{"$ref":"#/$defs/matrix","items":{"items":{"enum":[1,2]}}},"D":{"$ref":"#/$defs/matrix","items":{"items":{"enum":[1,2]}}}},"required":["A","B","C","D"],"additionalProperties":false,` +
			`"$defs":{"idList":{"type":"array","items":{"type":"integer"}},"matrix":{"type":"array","items":{"$ref":"#/$defs/idList"}}}}`},
	},
}

func TestSchemasOfEveryKindOfType(t *testing.T) {
	valid := mustCompile(t, `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, nil)
	for kind, tests := range inferenceTable {
		t.Run(kind, func(t *testing.T) {
			for _, test := range tests {
				typ := reflect.TypeOf(test.v)
				got, err := schemaForType(typ)
				want := strings.ReplaceAll(test.want, "…", `"additionalProperties":false}`)
				if err != nil || string(got) != want {
					t.Errorf("schema of %v:\n got %s, %v\nwant %s", typ, got, err, want)
					continue
				}
				if err := valid.Validate(got); err != nil {
					t.Errorf("the schema of %v is not valid: %v", typ, err)
				}
				for range 3 {
					if again, err := inferSchema(typ, false); err != nil || string(again) != string(got) {
						t.Errorf("the second schema of %v is %s, %v", typ, again, err)
					}
				}
				if text, err := json.Marshal(test.v); err != nil {
					t.Logf("%v: %v", typ, err)
				} else if s, err := compileInferred(typ); err != nil || s.Validate(text) != nil {
					t.Errorf("%s does not fit the schema of %v: %v", text, typ, s.Validate(text))
				}
			}
		})
	}
}

// TestEveryAssertionOfATag writes each keyword that asserts something, finds
// it in the schema, and sees it obeyed.
func TestEveryAssertionOfATag(t *testing.T) {
	type fields struct {
		Type     any            `jsonschema:"type=boolean"`
		Enum     string         `jsonschema:"enum=a|b c|3"`
		Const    int            `jsonschema:"const=7"`
		Multiple float64        `jsonschema:"multipleOf=0.5"`
		Max      int            `jsonschema:"maximum=10"`
		Below    float64        `jsonschema:"exclusiveMaximum=1e2"`
		Min      *int           `jsonschema:"minimum=-1"`
		Above    int            `jsonschema:"exclusiveMinimum=0"`
		Longest  string         `jsonschema:"maxLength=2"`
		Shortest string         `jsonschema:"minLength=2"`
		Pattern  string         `jsonschema:"pattern=^a[,]b=?$"`
		Most     []int          `jsonschema:"maxItems=1"`
		Least    []int          `jsonschema:"minItems=1"`
		Unique   []any          `jsonschema:"uniqueItems=true"`
		Contains []int          `jsonschema:"contains={\"const\":1},minContains=2,maxContains=2"`
		Props    map[string]int `jsonschema:"minProperties=1,maxProperties=1"`
		Names    map[string]int `jsonschema:"propertyNames={\"maxLength\":1}"`
		Required map[string]int `jsonschema:"required=a|b"`
		Depends  map[string]int `jsonschema:"dependentRequired={\"a\":[\"b\"]}"`
		Elements []string       `jsonschema:"minLength=1,maxItems=2"`
		Format   string         `jsonschema:"when,format=date"`
	}
	tests := map[string][2][]string{ // what fits, and what does not
		"Type": {{"true"}, {"1"}}, "Enum": {{`"a"`, `"b c"`, `"3"`}, {`"b"`, "3"}}, "Const": {{"7", "7.0"}, {"8"}}, "Multiple": {{"1.5"}, {"1.2"}},
		"Max": {{"10"}, {"11"}}, "Below": {{"99.9"}, {"100"}}, "Min": {{"-1", "null"}, {"-2"}}, "Above": {{"1"}, {"0"}}, "Longest": {{`"éé"`}, {`"abc"`}},
		"Shortest": {{`"ab"`}, {`"é"`}}, "Pattern": {{`"a,b"`, `"a,b="`}, {`"a"`}}, "Most": {{"[]", "[1]"}, {"[1,2]"}}, "Least": {{"[1]"}, {"[]"}}, "Unique": {{`[1,"1"]`}, {"[1,1.0]"}},
		"Contains": {{"[1,2,1]"}, {"[1]", "[1,1,1]"}}, "Props": {{`{"a":1}`}, {"{}", `{"a":1,"b":1}`}}, "Names": {{`{"a":1}`}, {`{"ab":1}`}},
		"Required": {{`{"a":1,"b":1}`}, {`{"a":1}`}}, "Depends": {{`{"b":1}`}, {`{"a":1}`}}, "Elements": {{`["a"]`}, {`[""]`, `["a","b","c"]`}}, "Format": {{`"soon"`}, {"1"}},
	}
	typ := reflect.TypeFor[fields]()
	sent, err := schemaForType(typ)
	if err != nil {
		t.Fatal(err)
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		_, pairs := splitTag(f.Tag.Get("jsonschema"))
		for _, pair := range pairs {
			if key, _, _ := strings.Cut(pair, "="); !strings.Contains(string(sent), `"`+key+`":`) {
				t.Errorf("%s: no %s in %s", f.Name, key, sent)
			}
		}
		s, err := compileInferred(reflect.StructOf([]reflect.StructField{f}))
		if err != nil {
			t.Fatal(err)
		}
		for n, docs := range tests[f.Name] {
			for _, doc := range docs {
				if err := s.Validate([]byte(`{"` + f.Name + `":` + doc + `}`)); (err == nil) != (n == 0) {
					t.Errorf("%s, %s: %v", f.Name, doc, err)
				}
			}
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(tagKeywords)) {
		if schemaKeywords[keyword].compile == nil && !slices.Contains([]string{"x-mcp-header", "default", "description", "title", "examples", "deprecated", "readOnly", "writeOnly"}, keyword) {
			t.Errorf("%s is in a tag and nothing for a schema", keyword)
		}
	}
}

func TestTagsThatAreOnlyText(t *testing.T) {
	for _, text := range []string{"the name of the city", "one, two, and three", "a=b is not a keyword after a space, x =1", "é=ü", "in %, 0 to 100", `say "hi"`, "https://example.com/?a=1, b=2", "-", "commas,only", "a {\"json\":[1,2]}"} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: reflect.StructTag("jsonschema:" + fmt.Sprintf("%q", text))}})
		got, err := schemaForType(typ)
		want := `{"type":"object","properties":{"A":{"type":"integer","description":` + string(appendString(nil, text)) + `}},"required":["A"],"additionalProperties":false}`
		if strings.HasPrefix(text, "a=b") { // which begins like one
			if err == nil || !strings.Contains(err.Error(), `field A: the jsonschema tag has the unknown keyword "a"`) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", text, got, err, want)
		}
	}
}

// refusal returns why a tool with such arguments is refused.
func refusal[In any]() (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r)
		}
	}()
	AddTool(NewServer(Implementation{Name: "s", Version: "1"}, nil), Tool{Name: "t"}, func(context.Context, *Request, In) (string, error) { return "", nil })
	return ""
}

func TestTagsAreCheckedAtRegistration(t *testing.T) {
	type marked struct {
		N int `json:"n" jsonschema:"x-mcp-header=N"`
	}
	tests := []struct{ got, want string }{
		{refusal[struct {
			A string `jsonschema:"the region,x-mcp-header=Region"`
			B *bool  `jsonschema:"x-mcp-header=Dry-Run"`
			C struct {
				D int64 `json:"d" jsonschema:"x-mcp-header=Depth"`
			}
		}](), ""},
		{refusal[struct {
			A string `json:"a" jsonschema:"x-mcp-header=two words"`
		}](), "x-mcp-header at the root.a: must be a name that an HTTP header can have"},
		{refusal[struct {
			A string `json:"a" jsonschema:"x-mcp-header="`
		}](), "x-mcp-header at the root.a: must be a name"},
		{refusal[struct {
			A string `jsonschema:"x-mcp-header=Same"`
			B string `json:"b" jsonschema:"x-mcp-header=same"`
		}](), `x-mcp-header at the root.b: "same" is used twice`},
		{refusal[struct{ A []marked }](), "x-mcp-header at the root.A.items.n: only a property that is reached through properties"},
		{refusal[struct{ A, B marked }](), "x-mcp-header at the root.$defs.marked.n: only a property"},
		{refusal[struct {
			A []string `jsonschema:"x-mcp-header=A"`
		}](), "field A: the jsonschema tag's x-mcp-header=A does not fit array"},
		{refusal[struct {
			A struct {
				B *float64 `jsonschema:"x-mcp-header=A"`
			}
		}](), "field A.B: the jsonschema tag's x-mcp-header=A does not fit number"},
		{refusal[struct {
			A struct {
				B []struct {
					C int `jsonschema:"minimum=1,minimun=2"`
				}
			}
		}](), `field A.B.C: the jsonschema tag has the unknown keyword "minimun"`},
		{refusal[struct {
			A []int `jsonschema:"default=[1,\"b\"]"`
		}](), `field A: the jsonschema tag's value [1,"b"] does not fit: /1: must be an integer, got a string`},
		{refusal[struct {
			A struct{ N, M int } `json:"a" jsonschema:"default={\"N\":1}"`
		}](), `/properties/a/default: {"N":1} does not fit: /M: is required`},
		{refusal[struct {
			A []marked `json:"a" jsonschema:"default=[{}]"`
		}](), `/properties/a/default: [{}] does not fit: /0/n: is required`},
		{refusal[struct {
			A struct{ N, M int } `jsonschema:"default={\"N\":1,\"M\":2},examples={}"`
			B struct {
				N int `jsonschema:"default=1"`
			} `jsonschema:"default={}"`
		}](), ""},
		{refusal[struct{ *knowsItems }](), "JSONSchema of struct { *mcp.knowsItems } panics"},
		{refusal[struct{ A func() }](), "field A: func() has no JSON form"},
		{refusal[struct {
			A, B []node `jsonschema:"required=x|x"`
		}](), "field A: the jsonschema tag is wrong: /required: lists \"x\" twice"},
		{refusal[[]int](), "the arguments of a tool are a JSON object, which []int is not"},
	}
	for _, test := range tests {
		if test.want == "" && test.got != "" || !strings.Contains(test.got, test.want) {
			t.Errorf("got %s\nwant %s", test.got, test.want)
		}
	}
}

// TestFormsOfGoTypes: a Go type gives the form of an elicitation, and what a
// form cannot ask for is refused by its name.
func TestFormsOfGoTypes(t *testing.T) {
	type choice string
	tests := []struct {
		v    any
		want string
	}{
		{struct {
			Name  string    `json:"name" jsonschema:"your name,title=Name,minLength=1,maxLength=80"`
			Mail  *string   `json:"mail" jsonschema:"format=email"`
			Age   uint8     `json:"age" jsonschema:"in years,default=18"`
			Ratio float64   `json:"ratio,omitempty" jsonschema:"minimum=0,maximum=1"`
			Agree bool      `json:"agree"`
			When  time.Time `json:"when"`
			Size  choice    `json:"size" jsonschema:"enum=S|M|L,default=M"`
			Many  []choice  `json:"many" jsonschema:"enum=a|b,maxItems=2"`
		}{}, ""},
		{struct{}{}, ""},
		{struct {
			A struct{ B int }
		}{}, "requestedSchema.properties.A must have one type"},
		{struct{ C, D inner }{}, "requestedSchema.properties.C must have one type"},
		{struct{ E any }{}, "requestedSchema.properties.E must have one type"},
		{struct{ F []string }{}, `requestedSchema.properties.F.items must have "type": "string" and enum`},
		{struct{ G []int }{}, "requestedSchema.properties.G.items must have"},
		{struct{ H [2]string }{}, "requestedSchema.properties.H.items must have"},
		{struct{ I []byte }{}, "requestedSchema.properties.I.contentEncoding is not for a form's field of type string"},
		{struct{ J map[string]string }{}, "requestedSchema.properties.J must have one type"},
		{struct {
			K string `jsonschema:"format=uuid"`
		}{}, `requestedSchema.properties.K.format "uuid" must be email`},
		{struct {
			L int `jsonschema:"multipleOf=2"`
		}{}, "requestedSchema.properties.L.multipleOf is not for a form's field of type integer"},
		{struct{ M *node }{}, "requestedSchema.properties.M must have one type"},
		{map[string]string{}, "requestedSchema.additionalProperties: a form is nothing but properties"},
		{"", `requestedSchema must have "type": "object"`},
	}
	for _, test := range tests {
		form, err := schemaForType(reflect.TypeOf(test.v))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := checkElicit(&ElicitParams{Message: "m", RequestedSchema: form}, rev20251125); err != nil {
			got = err.Error()
		}
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s:\n got %s\nwant %s", form, got, test.want)
		}
	}
}

func TestDefaultsReachEverythingThatIsDescribed(t *testing.T) {
	const x = `{"properties":{"x":{"default":1}}}`
	tests := []struct{ schema, doc, want string }{
		{`{"properties":{"a":{"default":null},"b":{"default":false},"c":{"default":""},"d":{"default":0},"e":{"default":[]}}}`, `{}`, `{"a":null,"b":false,"c":"","d":0,"e":[]}`},
		{`{"properties":{"a":{"default":{"k": 1.0}}}}`, "\t{\r\n}\n", "\t{\"a\":{\"k\": 1.0}\r\n}\n"},
		{x, `{"x":null}`, `{"x":null}`},
		{x, `{"y":{},"\u0078":[]}`, `{"y":{},"\u0078":[]}`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":` + x + `}}`, `{"y":1}`, `{"y":1,"x":1}`},
		{`{"allOf":[` + x + `,{"properties":{"x":{"default":2},"y":{"default":3}}}]}`, `{}`, `{"x":1,"y":3}`},
		{`{"properties":{"x":{"allOf":[{"default":4}]},"y":{"$ref":"#/$defs/y"}},"$defs":{"y":{"default":5}}}`, `{}`, `{"x":4,"y":5}`},
		{`{"properties":{"x":{"$ref":"#/$defs/y","default":6}},"$defs":{"y":{"default":5}}}`, `{}`, `{"x":6}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"$ref":"#/definitions/y","default":6}},"definitions":{"y":{"default":5}}}`, `{}`, `{"x":5}`},
		{`{"properties":{"a":` + x + `}}`, `{"a":{}, "b":{}}`, `{"a":{"x":1}, "b":{}}`},
		{`{"properties":{"a":` + x + `}}`, `{"a":null}`, `{"a":null}`},
		{`{"properties":{"a":` + x + `}}`, `{"a":[{}]}`, `{"a":[{}]}`},
		{`{"additionalProperties":` + x + `}`, `{"a":{},"b":{"x":2}}`, `{"a":{"x":1},"b":{"x":2}}`},
		{`{"patternProperties":{"^a":true},"additionalProperties":` + x + `}`, `{"a":{},"b":{}}`, `{"a":{},"b":{"x":1}}`},
		{`{"patternProperties":{"^a":` + x + `},"properties":{"ab":{}}}`, `{"a":{},"ab":{},"b":{}}`, `{"a":{"x":1},"ab":{"x":1},"b":{}}`},
		{`{"prefixItems":[true,` + x + `],"items":{"properties":{"y":{"default":2}}}}`, `[{},{},{}]`, `[{},{"x":1},{"y":2}]`},
		{`{"items":{"items":` + x + `}}`, `[[{}],{},[[],{"x":0}]]`, `[[{"x":1}],{},[[],{"x":0}]]`},
		// Within defaults.
		{`{"properties":{"a":{"default":{},"properties":{"b":{"default":{"c":1},"properties":{"d":{"default":[{}],"items":` + x + `}}}}}}}`, `{}`, `{"a":{"b":{"c":1,"d":[{"x":1}]}}}`},
		{`{"properties":{"a":{"default":{"x":0},"$ref":"#/$defs/x"},"b":{"default":{},"$ref":"#/$defs/x"}},"$defs":{"x":` + x + `}}`, `{}`, `{"a":{"x":0},"b":{"x":1}}`},
		{`{"properties":{"next":{"$ref":"#","default":{}},"n":{"default":1}}}`, `{}`, `{"next":{"n":1},"n":1}`},
		{`{"properties":{"next":{"$ref":"#","default":{}},"n":{"default":1}}}`, `{"next":{"next":null}}`, `{"next":{"next":null,"n":1},"n":1}`},
		{`{"properties":{"a":{"default":{},"properties":{"b":{"$ref":"#/properties/a"}}}}}`, `{}`, `{"a":{"b":{}}}`},
		// What only may apply gives nothing.
		{`{"anyOf":[` + x + `],"oneOf":[` + x + `],"not":` + x + `,"if":` + x + `,"then":` + x + `,"dependentSchemas":{"y":` + x + `}}`, `{"y":1}`, `{"y":1}`},
		{x, `{"y":`, `{"y":`}, {x, `7`, `7`}, {x, ` `, `{"x":1}`}, {`{"default":{}}`, ` null`, ` null`},
	}
	for _, test := range tests {
		s := mustCompile(t, test.schema, nil)
		doc := []byte(test.doc)
		if got := s.applyDefaults(doc); string(got) != test.want {
			t.Errorf("%s\n of %s:\n got %s\nwant %s", test.schema, test.doc, got, test.want)
		}
		if string(doc) != test.doc {
			t.Errorf("%s was written to", test.doc)
		}
	}
}

// TestDefaultsThatDouble: what doubles at every level stays small.
func TestDefaultsThatDouble(t *testing.T) {
	schema := `{"$ref":"#/$defs/d0","$defs":{"d60":{}`
	for i := range 60 {
		schema += fmt.Sprintf(`,"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d","default":{}},"b":{"$ref":"#/$defs/d%d","default":{}}}}`, i, i+1, i+1)
	}
	start := time.Now()
	filled := mustCompile(t, schema+"}}", nil).applyDefaults([]byte("{}"))
	if err := validJSON(filled); err != nil || len(filled) > 4*maxNestedDefaults || time.Since(start) > 20*time.Second {
		t.Errorf("%d bytes, %v, %v", len(filled), err, time.Since(start))
	}
}

func TestArgumentsHaveTheirDefaults(t *testing.T) {
	type point struct {
		X int     `json:"x" jsonschema:"default=1"`
		Y float64 `json:"y,omitempty" jsonschema:"default=0.5"`
	}
	type in struct {
		At    point            `json:"at" jsonschema:"default={}"`
		To    *point           `json:"to"`
		Path  []point          `json:"path" jsonschema:"default=[{\"x\":7}]"`
		Named map[string]point `json:"named,omitempty"`
		Mode  *string          `json:"mode" jsonschema:"enum=a|b,default=b"`
		Tags  []string         `json:"tags" jsonschema:"default=[\"new\"]"`
		When  time.Duration    `json:"when" jsonschema:"default=1000"`
		Big   *big.Int         `json:"big" jsonschema:"default=123456789012345678901234567890"`
	}
	_, s, err := argumentsSchema(reflect.TypeFor[in]())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ doc, want string }{
		{`{}`, `{"at":{"x":1,"y":0.5},"to":null,"path":[{"x":7,"y":0.5}],"mode":"b","tags":["new"],"when":1000,"big":123456789012345678901234567890}`},
		{`{"at":{"x":0},"to":{},"path":[],"named":{"n":{}},"mode":null,"tags":null,"when":0,"big":null}`,
			`{"at":{"x":0,"y":0.5},"to":{"x":1,"y":0.5},"path":[],"named":{"n":{"x":1,"y":0.5}},"mode":null,"tags":null,"when":0,"big":null}`},
	}
	for _, test := range tests {
		filled := s.applyDefaults([]byte(test.doc))
		var v in
		if err := s.Validate(filled); err != nil {
			t.Errorf("%s: %v", filled, err)
		} else if err := decodeArguments(filled, &v); err != nil {
			t.Errorf("%s: %v", filled, err)
		}
		if got, _ := json.Marshal(v); string(got) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.doc, got, test.want)
		}
	}
}

// TestIntegersAsJSONSchemaHasThem: an integer is one however it is written, and
// comes to Go exactly.
func TestIntegersAsJSONSchemaHasThem(t *testing.T) {
	type in struct {
		I   int64          `json:"i"`
		I8  int8           `json:"i8"`
		U   uint64         `json:"u"`
		P   *uint16        `json:"p"`
		L   []int32        `json:"l"`
		M   map[string]int `json:"m"`
		D   time.Duration  `json:"d"`
		Big *big.Int       `json:"big"`
		F   float64        `json:"f"`
		N   json.Number    `json:"n"`
	}
	typ := reflect.TypeFor[in]()
	s, err := compileInferred(typ)
	if err != nil {
		t.Fatal(err)
	}
	const zeros = `{"i":0,"i8":0,"u":0,"p":null,"l":null,"m":null,"d":0,"big":null,"f":0,"n":0}`
	tests := []struct{ doc, want string }{ // want is a member as it comes back, or what is wrong
		{`"i":1.0`, `"i":1`}, {`"i":1e2`, `"i":100`}, {`"i":-1.50E+1`, `"i":-15`}, {`"i":100e-2`, `"i":1`}, {`"i":-0.0`, `"i":0`}, {`"i":0e999999999999`, `"i":0`},
		{`"i":9007199254740993.0`, `"i":9007199254740993`}, {`"i":9223372036854775807`, `"i":9223372036854775807`}, {`"i":-9.223372036854775808e18`, `"i":-9223372036854775808`},
		{`"i":0.00000000000000000001e20`, `"i":1`}, {`"i8":-1.28e2`, `"i8":-128`}, {`"u":18446744073709551615.000`, `"u":18446744073709551615`}, {`"u":-0`, `"u":0`}, {`"u":-0e1`, `"u":0`},
		{`"p":6.5535e4`, `"p":65535`}, {`"l":[1.0,2e0]`, `"l":[1,2]`}, {`"m":{"a":1e1}`, `"m":{"a":10}`}, {`"d":1e9`, `"d":1000000000`},
		{`"big":1e30`, `"big":1000000000000000000000000000000`}, {`"big":-123456789012345678901234567890.0`, `"big":-123456789012345678901234567890`},
		{`"f":1e2`, `"f":100`}, {`"n":1.0`, `"n":1.0`}, {`"n":1e400`, `"n":1e400`},
		{`"i":1.5`, `/i: must be an integer, got a number`}, {`"i":1e-1`, `/i: must be an integer`}, {`"l":[1,0.1]`, `/l/1: must be an integer`}, {`"m":{"a":5e-1}`, `/m/a: must be an integer`},
		{`"big":1.5`, `/big: must be an integer`}, {`"i":"1"`, `/i: must be an integer, got a string`}, {`"i8":128`, `/i8: must be at most 127`}, {`"i8":1e9`, `/i8: must be at most 127`},
		{`"u":-1`, `/u: must be at least 0`}, {`"p":65536.0`, `/p: must be at most 65535`},
		{`"i":9223372036854775808`, `arguments.i must be an integer within the range of int64`}, {`"i":1e19`, `arguments.i must be an integer within the range of int64`},
		{`"i":1e999999999`, `arguments.i must be an integer within the range of int64`}, {`"u":1.8446744073709551616e19`, `arguments.u must be an integer within the range of uint64`},
		{`"d":1e20`, `arguments.d must be an integer within the range of time.Duration`}, {`"f":1e400`, `arguments.f must be a number within the range of float64`},
	}
	for _, test := range tests {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(zeros), &fields); err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(test.doc, ":")
		fields[strings.Trim(name, `"`)] = json.RawMessage(value)
		doc, _ := json.Marshal(fields)
		var v in
		err := s.Validate(doc)
		if err == nil {
			err = decodeArguments(doc, &v)
		}
		back, _ := json.Marshal(v)
		if err == nil && !strings.Contains(string(back), test.want+",") && !strings.Contains(string(back), test.want+"}") {
			t.Errorf("%s comes back as %s", test.doc, back)
		} else if err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.doc, err, test.want)
		}
		if refused := !strings.HasPrefix(test.want, `"`); refused != (err != nil) {
			t.Errorf("%s: %v", test.doc, err)
		}
	}
}
