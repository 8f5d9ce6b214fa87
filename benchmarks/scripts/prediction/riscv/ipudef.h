// Stand-in for the vendor's header: a pair of floats that the compiler takes apart into two registers.
#ifndef SNNC_RISCV_IPUDEF_H
#define SNNC_RISCV_IPUDEF_H

struct compared2 {
  bool x, y;
  bool operator[](unsigned i) const { return i == 0 ? x : y; }
};

struct __attribute__((may_alias)) float2 {
  float x, y;
  float operator[](unsigned i) const { return i == 0 ? x : y; }
};

#define SNNC_OPERATOR(op)                                                                                                                  \
  inline float2 operator op(float2 a, float2 b) { return float2{a.x op b.x, a.y op b.y}; }                                                 \
  inline float2 operator op(float2 a, float b) { return float2{a.x op b, a.y op b}; }                                                      \
  inline float2 operator op(float a, float2 b) { return float2{a op b.x, a op b.y}; }                                                      \
  inline float2 &operator op## = (float2 & a, float2 b) { return a = a op b; }
SNNC_OPERATOR(+)
SNNC_OPERATOR(-)
SNNC_OPERATOR(*)
SNNC_OPERATOR(/)
#undef SNNC_OPERATOR
#define SNNC_COMPARISON(op)                                                                                                                \
  inline compared2 operator op(float2 a, float2 b) { return compared2{a.x op b.x, a.y op b.y}; }                                           \
  inline compared2 operator op(float2 a, float b) { return compared2{a.x op b, a.y op b}; }                                                \
  inline compared2 operator op(float a, float2 b) { return compared2{a op b.x, a op b.y}; }
SNNC_COMPARISON(<)
SNNC_COMPARISON(>)
SNNC_COMPARISON(<=)
SNNC_COMPARISON(>=)
SNNC_COMPARISON(==)
SNNC_COMPARISON(!=)
#undef SNNC_COMPARISON
inline float2 operator-(float2 a) { return float2{-a.x, -a.y}; }
#endif
