// says
