/* Declarations for the GPU side of a tool, which only parses host functions. */
#pragma once
int isdigit(int);
int isalpha(int);
int isalnum(int);
int isspace(int);
int isupper(int);
int islower(int);
int tolower(int);
int toupper(int);
