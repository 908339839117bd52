/* Declarations for the GPU side of a tool, which only parses host functions. */
#pragma once
double sqrt(double);
double pow(double, double);
double exp(double);
double exp2(double);
double log(double);
double log2(double);
double log10(double);
double floor(double);
double ceil(double);
double round(double);
double fabs(double);
double fmin(double, double);
double fmax(double, double);
double sin(double);
double cos(double);
#define NAN __builtin_nan("")
#define INFINITY __builtin_inf()
